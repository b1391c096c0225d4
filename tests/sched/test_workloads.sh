# Programs that check themselves.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync spin
inside -- workloads.sh
