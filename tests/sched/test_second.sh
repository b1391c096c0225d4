# A second scheduler.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- second.sh
