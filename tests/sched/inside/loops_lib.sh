# Sourced by what runs the loops of loops.c, after lib.sh.

# kicks NAME: how often a process of this name had to give way, because it waited
kicks() {
    tr -d '\n' </tmp/status | tr '{' '\n' | sed -n "s/.*\"comm\": *\"$1\".*\"kicks\": *\([0-9]*\).*/\1/p" | awk '{ sum += $1 } END { print sum + 0 }'
}

# reported NUMBER: of lines
reported() {
    [ "$(cat /tmp/report.* 2>/dev/null | wc -l)" = "$1" ]
}

# start_loops SECONDS NAME...: beside each other, until they are killed. Post: each has reported, to
# /tmp/report.NAME; $all are the processes.
start_loops() {
    local seconds=$1 name number=0
    shift
    all=
    rm -f /tmp/report.*
    for name in "$@"; do
        ./loops $name --seconds "$seconds" --stay >/tmp/report.$name &
        all="$all $!"
        number=$((number + 1))
    done
    wait_for reported $number
}
