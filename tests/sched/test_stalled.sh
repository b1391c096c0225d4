# The kernel's watchdog.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- stalled.sh
