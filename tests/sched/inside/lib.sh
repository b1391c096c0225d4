# Sourced by what runs inside of the virtual machine, under BusyBox. A script ends with `end`, which
# looks for what must never be: a task that is lost, a scheduler that is still there, a complaint of
# the kernel.
state=/sys/kernel/sched_ext/state
log=/tmp/sched.log

fail() {
    echo "FAILED: $*"
    [ ! -e $log ] || sed 's/^/    sched: /' $log
    echo "    state: $(cat $state)"
    dmesg -r | grep -v '^<[5-7]>' | tail -n 25 | sed 's/^/    kernel: /'
    exit 1
}

# Waits for something to be true, for as long as software emulation may take.
wait_for() {
    local tries=0
    while ! "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "never: $*"
        sleep 0.1
    done
}

# Most of what follows is asked again and again beside tasks that want the CPU: without processes of
# its own.

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

# start_sched [OPTION]...: of `lissom sched start`. Post: it runs, as process $sched.
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

# runs: the scheduler that was started has not ended
runs() {
    alive $sched && is_state enabled
}

# ended CODE: waits for the process $sched to end, with this exit code
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

# refused OPTION...: `lissom sched start` fails, says so in one line, and changes nothing. Post: the
# line is in /tmp/refusal
refused() {
    local before code=0
    before=$(cat $state)
    lissom sched start "$@" >/tmp/refusal 2>&1 || code=$?
    [ $code != 0 ] || fail "started, with $*"
    [ "$(wc -l </tmp/refusal)" = 1 ] || { cat /tmp/refusal; fail "a refusal has one line"; }
    is_state "$before" || fail "the refusal has changed the state from $before"
}

# start_hogs NUMBER: processes that compute all the time, $hogs
start_hogs() {
    local i=0
    while [ $i -lt "$1" ]; do
        ./sync hog &
        hogs="$hogs $!"
        i=$((i + 1))
    done
}

# None of them is lost: each still gets to run.
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

# children PID...: all of them end well
children() {
    local child
    for child in "$@"; do
        wait "$child" || fail "process $child ended with $?"
    done
}

# get_ticks PID: the CPU time that it has used; post: in $ticks, of which a second has 100
get_ticks() {
    read -r ticks 2>/dev/null <"/proc/$1/stat" || fail "process $1 is gone"
    ticks=${ticks##*) }
    set -- $ticks
    ticks=$((${12} + ${13}))
}

# advances PID...: each of them gets to run
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

# What the kernel must not say. STALL=1: that threads were not run is what the test is about.
complaints='BUG:|WARNING:|Oops|general protection|lockup|rcu:.*stall|hung_task|blocked for more than|stalled|runnable task stall'
[ -z "$STALL" ] || complaints='BUG:|WARNING:|Oops|general protection|lockup|rcu:.*stall|hung_task|blocked for more than'

end() {
    wait_for is_state disabled
    [ -z "$hogs" ] || fail "left behind: $hogs"
    # The kernel's own scheduler has everybody again.
    sh -c 'exit 7'
    [ $? = 7 ] || fail "a process of the kernel's own scheduler"
    if dmesg | grep -E "$complaints"; then
        fail "the kernel's log"
    fi
    exit 0
}

grep -q . $state 2>/dev/null || { echo "FAILED: this kernel has no sched_ext"; exit 1; }
