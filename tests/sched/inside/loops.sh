# loops.sh works|spins: loops beside each other on one CPU. Of those that work, none may ever be
# taken for one that waits; of those that wait, each has to be found, but for those in which a
# register counts: it takes registers that are the same again to be looked at more closely.
. ./lib.sh
. ./loops_lib.sh
count="ttas-backoff counted"

# together NAME...: what they say, and how often they had to give way
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
