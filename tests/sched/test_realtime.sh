# A real-time task beside other tasks.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync tasks
inside -- realtime.sh
