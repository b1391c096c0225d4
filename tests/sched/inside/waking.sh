. ./lib.sh

# count NAME: print one of lissom's counts
count() {
    lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
    # shellcheck disable=SC2020 # a line for each
    tr ',{' '\n\n' </tmp/status | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -n 1
}

# run WORKLOAD THREADS: run it, and set $stays to the increase of `bulk_stays`
run() {
    local before
    before=$(count bulk_stays)
    ./sync "$1" --threads "$2" --rounds 500 --work 2000 >/tmp/report || fail "$1"
    stays=$(($(count bulk_stays) - before))
    echo "$1, $2 threads: $stays stayed"
}

start_sched --spin=off
run barrier 16
[ $stays -gt 0 ] || fail "nobody stayed"
run cond 16
[ $stays -gt 0 ] || fail "nobody stayed"
many=$stays
# With fewer threads than CPUs, each wakes on an idle CPU. The counts are those of the whole
# machine.
run barrier 3
[ $stays -lt $((many / 20)) ] || fail "fewer threads than CPUs stayed"
lissom sched status
runs || fail "it has ended"
stop_sched
end
