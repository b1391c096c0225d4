# Loops that wait are detected.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- loops.sh spins
