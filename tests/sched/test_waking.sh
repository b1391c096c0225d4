# More threads than CPUs that sleep in the kernel and are woken together stay on their CPUs.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync
inside --cpus 4 -- waking.sh
