# Loops that work are never taken for ones that wait.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- loops.sh works
