# branches.sh: the emulated CPU has neither last-branch records nor counters of cache misses.
# --fault=blind: reading them is tried and fails. --fault=records: simulated records say of each
# thread that it loops without misses; registers are not examined.
. ./lib.sh
. ./loops_lib.sh

look() {
    lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
}

# says NAME: print the first number or text of this name in /tmp/status
says() {
    # shellcheck disable=SC2020 # a line for each
    tr ',{' '\n\n' </tmp/status | sed -n "s/.*\"$1\": *\"*\([a-z0-9]*\).*/\1/p" | head -n 1
}

# sites: print the number of sites
sites() {
    grep -c '"verdict"' /tmp/status
}

# run_loops NAME...: run these loops at the same time, and store the status after their reports in
# /tmp/status
run_loops() {
    local name
    start_loops 2 "$@"
    look
    for name in "$@"; do
        grep -q '"progress": 0,' /tmp/report.$name && fail "$name is stuck"
        echo "$name: $(kicks $name) kicks"
    done
    kill $all
    wait $all
    runs || fail "it has ended"
}

# none NAME...: check that none of these loops was preempted
none() {
    local name
    for name in "$@"; do
        [ "$(kicks $name)" = 0 ] || { tr '\n' ' ' </tmp/status; fail "$name works, and had to give way"; }
    done
}

# Without the hardware: detection by registers only.
start_sched
look
[ "$(says detector)" = registers ] || fail "the detector is $(says detector)"
grep -q "records" $log && fail "a CPU without records is nothing to speak of"
stop_sched
refused --detector=branches
cat /tmp/refusal
grep -q 'last-branch records, L1D misses, dTLB misses' /tmp/refusal || fail "what is missing"
start_sched --detector=branches --spin=off
look
[ "$(says detector)" = off ] || fail "the detector is $(says detector)"
stop_sched

# The program runs at every scan and reads nothing. Only detection by registers works.
start_sched --fault=blind
cat $log
grep -q 'cannot read the records (error -2)' $log || fail "it did not try to read the records"
run_loops register-count vector hash
[ "$(says detector)" = branches ] || fail "the detector is $(says detector)"
none register-count vector hash
run_loops flag ttas-pause
for name in flag ttas-pause; do
    [ "$(kicks $name)" -gt 0 ] || fail "$name waits, and is not found"
done
[ "$(says branch_kicks)" = 0 ] || fail "kicks by records that are not there"
stop_sched

# All threads are suspects; the tool has to classify them.
start_sched --fault=records
cat $log
grep -q 'with branch records' $log || fail "made-up records are not seen"
# shellcheck disable=SC2046 # words
set -- $(./loops list works)
while [ $# -gt 0 ]; do
    run_loops $1 $2 $3
    echo "    $(sites) sites"
    none $1 $2 $3
    [ "$(says branch_kicks)" = 0 ] || fail "$(says branch_kicks) kicks of who works"
    [ "$(sites)" -gt 0 ] || fail "nobody is suspected"
    shift
    [ $# = 0 ] || shift
    [ $# = 0 ] || shift
done
# Loops that wait are found by records alone.
run_loops flag ttas-pause flag-call
for name in flag ttas-pause flag-call; do
    [ "$(kicks $name)" -gt 0 ] || fail "$name waits, and is not found"
done
echo "kicks by records: $(says branch_kicks) of $(says spin_kicks)"
[ "$(says branch_kicks)" -gt 0 ] || fail "no kicks by records"
[ "$(says branch_kicks)" = "$(says spin_kicks)" ] || fail "kicks by registers, which are not looked at"
stop_sched
end
