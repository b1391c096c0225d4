# --detector=paper where there are no branch records: it is refused. With made-up records it takes
# everybody to spin, at once, and all still get to run; the proofs behind it count which of them do.
. "$(dirname "$0")/lib.sh"
build_scheduler
put loops
inside --cpus 1 -- paper.sh
