# Sourced by scripts that run inside the virtual machine, under BusyBox. A script ends with `end`,
# which checks that no task is lost, no scheduler remains, and the kernel has not complained.
state=/sys/kernel/sched_ext/state
log=/tmp/sched.log

fail() {
    echo "FAILED: $*"
    [ ! -e $log ] || sed 's/^/    sched: /' $log
    echo "    state: $(cat $state)"
    dmesg -r | grep -v '^<[5-7]>' | tail -n 25 | sed 's/^/    kernel: /'
    exit 1
}

# wait_for COMMAND...: wait until it succeeds, for as long as software emulation may take
wait_for() {
    local tries=0
    while ! "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "never: $*"
        sleep 0.1
    done
}

# The functions below are called repeatedly beside tasks that want the CPU, so most of them start no
# processes.

is_state() {
    local is
    read -r is <$state
    [ "$is" = "$1" ]
}

alive() {
    kill -0 "$1" 2>/dev/null
}

gone() {
    ! alive "$1"
}

# start_sched [OPTION]...: start `lissom sched start` as process $sched, and wait until it runs
start_sched() {
    lissom sched start "$@" >$log 2>&1 &
    sched=$!
    wait_for started
}

started() {
    is_state enabled && grep -q '^lissom sched: running' $log && return 0
    alive $sched || fail "lissom sched start ended"
    return 1
}

# runs: whether the started scheduler still runs
runs() {
    alive $sched && is_state enabled
}

# ended CODE: wait until the process $sched exits; its exit code has to be CODE
ended() {
    local code=0
    wait_for gone $sched
    wait $sched || code=$?
    [ $code = "$1" ] || fail "lissom sched start ended with $code, not with $1"
    wait_for is_state disabled
}

stop_sched() {
    runs || fail "the scheduler has ended by itself"
    lissom sched stop || fail "lissom sched stop: $?"
    is_state disabled || fail "stopped, and not disabled"
    ended 0
}

# refused OPTION...: check that `lissom sched start` fails with one line, and changes nothing.
# Leaves the line in /tmp/refusal
refused() {
    local before code=0
    before=$(cat $state)
    lissom sched start "$@" >/tmp/refusal 2>&1 || code=$?
    [ $code != 0 ] || fail "started, with $*"
    [ "$(wc -l </tmp/refusal)" = 1 ] || { cat /tmp/refusal; fail "a refusal has one line"; }
    is_state "$before" || fail "the refusal has changed the state from $before"
}

# start_hogs NUMBER: start processes that compute all the time; adds them to $hogs
start_hogs() {
    local i=0
    while [ $i -lt "$1" ]; do
        ./sync hog &
        hogs="$hogs $!"
        i=$((i + 1))
    done
}

# end_hogs: kill the hogs, after checking that each still gets to run
end_hogs() {
    local hog code
    advances $hogs
    for hog in $hogs; do
        kill "$hog"
        code=0
        wait "$hog" || code=$?
        [ $code = 143 ] || fail "a process that computes ended with $code"
    done
    hogs=
}

# children PID...: wait for these children; each has to exit with 0
children() {
    local child
    for child in "$@"; do
        wait "$child" || fail "process $child ended with $?"
    done
}

# get_ticks PID: set $ticks to the process's CPU time, in 1/100 s
get_ticks() {
    read -r ticks 2>/dev/null <"/proc/$1/stat" || fail "process $1 is gone"
    ticks=${ticks##*) }
    set -- $ticks
    ticks=$((${12} + ${13}))
}

# advances PID...: wait until each of these processes has run
advances() {
    local process pairs=
    for process in "$@"; do
        get_ticks "$process"
        pairs="$pairs $process:$ticks"
    done
    for process in $pairs; do
        wait_for more_ticks "${process%:*}" "${process#*:}"
    done
}

more_ticks() {
    get_ticks "$1"
    [ "$ticks" -gt "$2" ]
}

# Kernel messages that fail the test. STALL=1: the test provokes stalls, so allow messages about
# them.
complaints='BUG:|WARNING:|Oops|general protection|lockup|rcu:.*stall|hung_task|blocked for more than|stalled|runnable task stall'
[ -z "$STALL" ] || complaints='BUG:|WARNING:|Oops|general protection|lockup|rcu:.*stall|hung_task|blocked for more than'

end() {
    wait_for is_state disabled
    [ -z "$hogs" ] || fail "left behind: $hogs"
    # The kernel's own scheduler has to run all tasks again.
    sh -c 'exit 7'
    [ $? = 7 ] || fail "a process of the kernel's own scheduler"
    if dmesg | grep -E "$complaints"; then
        fail "the kernel's log"
    fi
    exit 0
}

grep -q . $state 2>/dev/null || { echo "FAILED: this kernel has no sched_ext"; exit 1; }
