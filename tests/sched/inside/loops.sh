# loops.sh works|spins: loops beside each other on one CPU. Of those that work, none may ever be taken for one that waits; of those that wait, each has to
# be found, but for those in which a register counts: it takes registers that are the same again to be looked at more closely.
. ./lib.sh
count="ttas-backoff counted"

# kicks NAME: how often a process of this name had to give way, because it waited
kicks() {
    tr -d '\n' </tmp/status | tr '{' '\n' | sed -n "s/.*\"comm\": *\"$1\".*\"kicks\": *\([0-9]*\).*/\1/p" | awk '{ sum += $1 } END { print sum + 0 }'
}

# reported NUMBER: of lines
reported() {
    [ "$(cat /tmp/report.* 2>/dev/null | wc -l)" = "$1" ]
}

# together NAME...: what they say, and how often they had to give way
together() {
    local name all= number=0 bad=
    rm -f /tmp/report.*
    for name in "$@"; do
        ./loops $name --seconds 3 --stay >/tmp/report.$name &
        all="$all $!"
        number=$((number + 1))
    done
    wait_for reported $number
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
