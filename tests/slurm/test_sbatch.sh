# The batch script itself, and the steps that it starts.
. "$(dirname "$0")/lib.sh"

cat >script <<'SCRIPT'
#!/bin/sh
#SBATCH --output=out
#SBATCH --ntasks=1
cat /proc/$$/maps >script.maps
env >script.env
srun cat /proc/self/maps >step.maps
srun --lissom=off cat /proc/self/maps >off.maps
srun --lissom=off env >off.env
srun --lissom=cpus=1,idle=sleep env >again.env
LISSOM_SWITCH=off srun env >switched.env
SCRIPT
sbatch --wait script
lacks script.maps liblissom
lacks step.maps liblissom
has again.env "LD_PRELOAD=$runtime"

sbatch --wait --lissom=cpus=3 script
has script.maps "$runtime"
has script.env LISSOM_CPUS=3
has step.maps "$runtime"
lacks off.maps liblissom
lacks off.env LD_PRELOAD
lacks off.env GOMP_SPINCOUNT
lacks switched.env LD_PRELOAD
lacks switched.env GOMP_SPINCOUNT
has again.env LISSOM_CPUS=1
has again.env LISSOM_IDLE=sleep
has again.env "LD_PRELOAD=$runtime"
lacks out lissom

# Without options, and with options in the script.
sbatch --wait --lissom script
has script.maps "$runtime"
has step.maps "$runtime"
sed 's/^#SBATCH --ntasks=1/&\n#SBATCH --lissom=cpus=2/' script >with_option
sbatch --wait with_option
has script.maps "$runtime"
has script.env LISSOM_CPUS=2

# Without the environment of the submitting shell.
cat >bare <<'SCRIPT'
#!/bin/sh
#SBATCH --output=out
/bin/cat /proc/$$/maps >script.maps
/usr/bin/env >script.env
/usr/bin/srun --export=NONE /bin/cat /proc/self/maps >step.maps
/usr/bin/srun --lissom=off /bin/cat /proc/self/maps >off.maps
SCRIPT
for options in "" =cpus=3; do
    sbatch --wait --export=NONE "--lissom$options" bare
    has script.maps "$runtime"
    has step.maps "$runtime"
    lacks off.maps liblissom
done
has script.env LISSOM_CPUS=3
sbatch --wait --export=NONE bare
lacks script.maps liblissom
lacks step.maps liblissom
