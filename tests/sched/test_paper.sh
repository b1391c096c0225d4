# --detector=paper is refused on a CPU without branch records. With simulated records, all threads
# count as spinning at once and still get to run; the proofs that follow count those that really
# spin.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- paper.sh
