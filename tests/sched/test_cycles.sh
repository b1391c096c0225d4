# Repeated start and stop.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- cycles.sh
