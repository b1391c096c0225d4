# The detector by last-branch records, on a CPU without them: it is refused, or runs without reading
# any. With simulated records that make every thread a suspect, no working thread is preempted.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- branches.sh
