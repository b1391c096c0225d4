# In an allocation, steps run under lissom; the shell or command that salloc starts does not.
. "$(dirname "$0")/lib.sh"

cat >inside <<'SCRIPT'
cat /proc/$$/maps >shell.maps
srun cat /proc/self/maps >step.maps
srun env >step.env
srun --lissom=off cat /proc/self/maps >off.maps
srun --lissom=cpus=1 env >again.env
SCRIPT
salloc --lissom=cpus=3 sh inside
lacks shell.maps liblissom
has step.maps "$runtime"
has step.env LISSOM_CPUS=3
lacks off.maps liblissom
has again.env LISSOM_CPUS=1

salloc --lissom sh inside
has step.maps "$runtime"
salloc sh inside
lacks step.maps liblissom
