# cgroups' limits.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside -- limits.sh
