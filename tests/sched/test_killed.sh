# The loader is killed.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- killed.sh
