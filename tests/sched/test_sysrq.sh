# The system request key S.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- sysrq.sh
