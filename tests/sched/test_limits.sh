# CPU limits of cgroups.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- limits.sh
