# Started and stopped, again and again.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- cycles.sh
