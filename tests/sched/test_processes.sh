# Thousands of short processes.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync tasks
inside -- processes.sh
