# Weights of cgroups, in a machine with exact time.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside --icount -- weights.sh
