# Sourced after lib.sh by scripts that run the loops of loops.c.

# kicks NAME: print how often a process of this name was preempted because it waited
kicks() {
    tr -d '\n' </tmp/status | tr '{' '\n' | sed -n "s/.*\"comm\": *\"$1\".*\"kicks\": *\([0-9]*\).*/\1/p" | awk '{ sum += $1 } END { print sum + 0 }'
}

# reported NUMBER: whether there are NUMBER lines of reports
reported() {
    [ "$(cat /tmp/report.* 2>/dev/null | wc -l)" = "$1" ]
}

# start_loops SECONDS NAME...: run these loops at the same time, until they are killed. Waits for
# their reports in /tmp/report.NAME, and sets $all to the processes.
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
