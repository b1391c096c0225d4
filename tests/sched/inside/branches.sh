# branches.sh: the emulated CPU has neither last-branch records nor counts of misses. --fault=blind:
# they are read all the same, and cannot be; --fault=records: they are made up, say of everybody
# that he goes round in a loop and misses nothing, and are all that is looked at.
. ./lib.sh
. ./loops_lib.sh

look() {
    lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
}

# says NAME: the first number, or text, of this name in /tmp/status
says() {
    # shellcheck disable=SC2020 # a line for each
    tr ',{' '\n\n' </tmp/status | sed -n "s/.*\"$1\": *\"*\([a-z0-9]*\).*/\1/p" | head -n 1
}

# sites: how many
sites() {
    grep -c '"verdict"' /tmp/status
}

# run_loops NAME...: beside each other. Post: /tmp/status, of when they have reported
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

# Nobody of them had to give way.
none() {
    local name
    for name in "$@"; do
        [ "$(kicks $name)" = 0 ] || { tr '\n' ' ' </tmp/status; fail "$name works, and had to give way"; }
    done
}

# Without the hardware: registers, and no other detector.
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

# The program runs at every look, and reads nothing: what registers tell is found, and nobody else.
start_sched --fault=blind
cat $log
grep -q 'the records cannot be read (error -2)' $log || fail "it was not tried to read the records"
run_loops register-count vector hash
[ "$(says detector)" = branches ] || fail "the detector is $(says detector)"
none register-count vector hash
run_loops flag ttas-pause
for name in flag ttas-pause; do
    [ "$(kicks $name)" -gt 0 ] || fail "$name waits, and is not found"
done
[ "$(says branch_kicks)" = 0 ] || fail "kicks by records that are not there"
stop_sched

# All are suspects, of whom the tool has to find out.
start_sched --fault=records
cat $log
grep -q 'branch records are read' $log || fail "made-up records are not seen"
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
# Those that wait are found by records alone.
run_loops flag ttas-pause flag-call
for name in flag ttas-pause flag-call; do
    [ "$(kicks $name)" -gt 0 ] || fail "$name waits, and is not found"
done
echo "kicks by records: $(says branch_kicks) of $(says spin_kicks)"
[ "$(says branch_kicks)" -gt 0 ] || fail "no kicks by records"
[ "$(says branch_kicks)" = "$(says spin_kicks)" ] || fail "kicks by registers, which are not looked at"
stop_sched
end
