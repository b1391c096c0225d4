# Beside a real-time task.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync tasks
inside -- realtime.sh
