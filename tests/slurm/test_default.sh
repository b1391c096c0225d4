# default= in plugstack.conf applies to jobs without --lissom.
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
# off applies to the steps of a job, too; a step with --lissom gets lissom.
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

# The site's options; the user's replace them.
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

# The example file as `make install-slurm` has installed it, and lissom at the plugin's default
# path.
grep -v '^#' "$prefix/share/lissom/plugstack.conf" >"$scratch/plugstack.conf"
has "$scratch/plugstack.conf" "bin=$prefix/bin/lissom"
srun --lissom cat /proc/self/maps >maps
has maps "$runtime"
plugin
srun --lissom cat /proc/self/maps >maps
has maps "$runtime"
