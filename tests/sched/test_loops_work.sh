# Loops that work are never detected as waiting.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- loops.sh works
