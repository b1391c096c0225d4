# Scheduling of a single process.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- partial.sh
