# loops.sh works|spins: run loops at the same time on one CPU. No loop that works may be detected.
# Each loop that waits has to be, except for those with a counter in a register: only threads whose
# registers repeat are examined more closely.
. ./lib.sh
. ./loops_lib.sh
count="ttas-backoff counted"

# together NAME...: run these loops; print their reports and how often each was preempted
together() {
    local name bad=
    start_loops 3 "$@"
    lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
    for name in "$@"; do
        echo "$(kicks $name) kicks: $(cat /tmp/report.$name)"
        grep -q '"progress": 0,' /tmp/report.$name && bad="$bad $name(stuck)"
        case $kind$(kicks $name) in
        works0) ;;
        works*) bad="$bad $name" ;;
        spins0) case " $count " in *" $name "*) ;; *) bad="$bad $name" ;; esac ;;
        esac
    done
    kill $all
    wait $all
    wrong="$wrong$bad"
}

kind=$1 wrong=
start_sched
# shellcheck disable=SC2046 # words
set -- $(./loops list $kind)
while [ $# -gt 0 ]; do
    if [ $# -ge 3 ]; then
        together "$1" "$2" "$3"
        shift 3
    else
        together "$@"
        shift $#
    fi
done
[ -z "$wrong" ] || { tr '\n' ' ' </tmp/status; fail "wrong:$wrong"; }
stop_sched
end
