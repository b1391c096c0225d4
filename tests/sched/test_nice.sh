# A nice value of 19.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside --icount -- nice.sh
