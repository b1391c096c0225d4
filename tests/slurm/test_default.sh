# default= in plugstack.conf is for jobs that do not say --lissom.
. "$(dirname "$0")/lib.sh"

plugin default=on
srun cat /proc/self/maps >maps
has maps "$runtime"
srun --lissom=off cat /proc/self/maps >maps
lacks maps liblissom
LISSOM_SWITCH=off srun cat /proc/self/maps >maps
lacks maps liblissom
LISSOM=0 srun cat /proc/self/maps >maps
lacks maps liblissom
# off holds for the steps of a job, too; who asks in there gets it.
cat >script <<'SCRIPT'
#!/bin/sh
#SBATCH --output=out
cat /proc/$$/maps >script.maps
srun cat /proc/self/maps >step.maps
srun --lissom cat /proc/self/maps >asked.maps
SCRIPT
sbatch --wait --lissom=off script
lacks script.maps liblissom
lacks step.maps liblissom
has asked.maps "$runtime"
sbatch --wait script
has script.maps "$runtime"
has step.maps "$runtime"

# Options of the site, instead of which the user's hold.
plugin default=switch=kernel,cpus=1
srun env >environment
has environment LISSOM_SWITCH=kernel
has environment LISSOM_CPUS=1
srun --lissom=idle=sleep env >environment
has environment LISSOM_SWITCH=auto
lacks environment LISSOM_CPUS

plugin default=off
srun cat /proc/self/maps >maps
lacks maps liblissom

# The example, as `make install-slurm` has made it, and the library where the plugin looks for it by
# itself.
grep -v '^#' "$prefix/share/lissom/plugstack.conf" >"$scratch/plugstack.conf"
has "$scratch/plugstack.conf" "lib=$prefix/lib/lissom/liblissom.so"
srun --lissom cat /proc/self/maps >maps
has maps "$runtime"
plugin
srun --lissom cat /proc/self/maps >maps
has maps "$runtime"
