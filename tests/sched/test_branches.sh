# The detector by last-branch records, where there are none: the kernel takes its programs, and it
# is refused, or nothing breaks; with records that are made up, of all who run, nobody who works has
# to give way.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- branches.sh
