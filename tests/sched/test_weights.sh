# cgroups' weights, in a machine where time is exact.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside --icount -- weights.sh
