# paper.sh: the paper's rule decides alone. --fault=records: simulated records say of each thread
# that it loops without misses. --fault=blind: no records can be read.
. ./lib.sh
. ./loops_lib.sh

# shown NAME COLUMN: print the number in this column of the table of scans, for the program NAME
shown() {
    awk -v name="$1" -v column="$2" \
        '$2 == name && $5 ~ /^[0-9]+$/ { print $column; exit }' /tmp/table
}

# audited NAME COLUMN: whether proofs have been counted. Reads the table: the JSON document would
# take long, since it names the place of each site, and all programs have sites here.
audited() {
    lissom sched status >/tmp/table
    [ "$(shown "$1" "$2")" -gt 0 ] 2>/dev/null
}

# scan NAME FIELD: print the number in this field of the JSON document, for the program NAME
scan() {
    # shellcheck disable=SC2020 # a line for each program
    tr -d '\n' </tmp/status | sed 's/.*"scans"://' | tr '{' '\n' | grep "\"comm\": *\"$1\"" |
        sed -n "s/.*\"$2\": *\([0-9.]*\).*/\1/p" | head -n 1
}

refused --detector=paper
cat /tmp/refusal
grep -q -- '--detector paper: .*last-branch records, L1D misses, dTLB' /tmp/refusal ||
    fail "what is missing"

# A thread has to be in its loop when the tool reads its memory.
start_sched --detector=paper --fault=records
cat $log
grep -q "by the paper's rule" $log || fail "the first line does not say so"
all=
for name in flag memory-count; do
    ./loops $name --seconds 25 >/tmp/report.$name &
    all="$all $!"
done
wait_for audited flag 5
wait_for audited memory-count 6
cat /tmp/table
[ "$(shown memory-count 5)" = 0 ] || fail "memory-count works, and is proven to spin"
for name in flag memory-count; do
    [ "$(shown $name 3)" = "$(shown $name 4)" ] || fail "the records show a loop at each look"
done
[ "$(sed -n 's/^spin_kicks *[^ ]* *//p' /tmp/table | cut -d' ' -f1)" != 0 ] || fail "nobody yields"
children $all
for name in flag memory-count; do
    cat /tmp/report.$name
    grep -q '"progress": 0,' /tmp/report.$name && fail "$name is stuck"
done
runs || fail "it has ended"
stop_sched
grep -q ' flag  ' $log || { cat $log; fail "no line for flag at the end"; }

# Nothing can be read: all threads are scanned, but none counts as spinning.
start_sched --detector=paper --fault=blind --stats 1s --json
start_loops 2 flag hash
lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
grep -q '"detector": "paper"' /tmp/status || fail "another detector"
for name in flag hash; do
    echo "$name: $(scan $name positives) positives of $(scan $name tries) tries"
    [ "$(scan $name tries)" -gt 0 ] || fail "$name is not scanned"
    [ "$(scan $name positives)" = 0 ] || fail "$name is taken to spin, by no records"
    [ "$(scan $name specificity)" = 1.0 ] || fail "the specificity of $name"
done
kill $all
wait $all
stop_sched
grep -q '"scans":{.*"positives":0,.*"tries":[1-9]' $log || fail "the lines of --stats"
end
