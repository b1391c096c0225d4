# Sourced by what runs inside of the virtual machine, under BusyBox. A script ends with `end`, which looks for what must never be: a task that is
# lost, a scheduler that is still there, a complaint of the kernel.
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

is_state() {
    [ "$(cat $state)" = "$1" ]
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
    grep -q '^lissom sched: running' $log && is_state enabled && return 0
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

# refused OPTION...: `lissom sched start` fails, says so in one line, and changes nothing. Post: the line is in /tmp/refusal
refused() {
    local before code=0
    before=$(cat $state)
    lissom sched start "$@" >/tmp/refusal 2>&1 || code=$?
    [ $code != 0 ] || fail "started, with $*"
    [ "$(wc -l </tmp/refusal)" = 1 ] || { cat /tmp/refusal; fail "a refusal has one line"; }
    is_state "$before" || fail "the refusal has changed the state from $before"
}

# children PID...: all of them end well
children() {
    local child
    for child in "$@"; do
        wait "$child" || fail "process $child ended with $?"
    done
}

# cpu_ticks PID: that it has used, of which a second has 100
cpu_ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# advances PID...: each of them gets to run
advances() {
    local process before
    for process in "$@"; do
        before=$(cpu_ticks "$process")
        wait_for more_ticks "$process" "$before"
    done
}

more_ticks() {
    alive "$1" || fail "process $1 is gone"
    [ "$(cpu_ticks "$1")" -gt "$2" ]
}

# What the kernel must not say. STALL=1: that threads were not run is what the test is about.
complaints='BUG:|WARNING:|Oops|general protection|lockup|rcu:.*stall|hung_task|blocked for more than|stalled|runnable task stall'
[ -z "$STALL" ] || complaints='BUG:|WARNING:|Oops|general protection|lockup|rcu:.*stall|hung_task|blocked for more than'

end() {
    wait_for is_state disabled
    # The kernel's own scheduler has everybody again.
    sh -c 'exit 7'
    [ $? = 7 ] || fail "a process of the kernel's own scheduler"
    if dmesg | grep -E "$complaints"; then
        fail "the kernel's log"
    fi
    exit 0
}

grep -q . $state 2>/dev/null || { echo "FAILED: this kernel has no sched_ext"; exit 1; }
