# Affinities, policies and nice values.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync tasks
inside -- pinned.sh
