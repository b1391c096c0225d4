# Tasks run under lissom if and only if srun is asked for it.
. "$(dirname "$0")/lib.sh"

srun cat /proc/self/maps >native
lacks native liblissom
srun --lissom cat /proc/self/maps >maps
has maps "$runtime"
srun --lissom=on,cpus=1 cat /proc/self/maps >maps
has maps "$runtime"
srun --lissom=off cat /proc/self/maps >maps
lacks maps liblissom

# The kill switch works here, too.
LISSOM=0 srun --lissom env >environment
lacks environment LD_PRELOAD

# All tasks of a step.
srun -n 3 --overcommit --lissom cat /proc/self/maps >maps
[ "$(grep -c "r-xp .*$runtime" maps)" = 3 ] || fail "not three tasks: $(cat maps)"

srun --help >help
has help --lissom=
has help 'switch=user,cpus=4'
