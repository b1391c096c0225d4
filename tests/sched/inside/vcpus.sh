# vcpus.sh: guests with more vCPUs than there are CPUs. Those that wait for a lock with PAUSE give
# way and get on, those that never wait are left alone.
. ./lib.sh

skip() {
    echo "$*"
    exit 77
}

# kicks COUNT: of status
kicks() {
    lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
    tr ',' '\n' </tmp/status | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -n 1
}

# guest_says NAME: a number of its last run
guest_says() {
    sed -n "s/^all:.*\b$1 \([0-9]*\).*/\1/p" /tmp/guest
}

# run_guest OPTION...: it ends well, and gets its lock
run_guest() {
    ./guest "$@" >/tmp/guest 2>&1 || { cat /tmp/guest; fail "guest $*: $?"; }
    runs || fail "it has ended"
    [ "$(guest_says acquired)" -gt 0 ] || fail "guest $*: $(cat /tmp/guest)"
}

[ -e /dev/kvm ] || skip "KVM does not load here"
grep -qw pausefilter /proc/cpuinfo || skip "this kernel does not believe that the emulated CPU has a pause filter"

start_sched
cat $log
grep -q "guests that spin are found" $log || fail "guests are not looked at"
run_guest --vms 4 --vcpus 1 --seconds 4
[ "$(guest_says pauses)" = 0 ] || fail "a lock of one vCPU is waited for: $(cat /tmp/guest)"
[ "$(kicks vcpu_kicks)" = 0 ] || fail "guests that do not spin: $(kicks vcpu_kicks) kicks"
echo "without spinning: $(tail -n 1 /tmp/guest), $(kicks vcpu_kicks) kicks"

run_guest --vms 1 --vcpus 5 --seconds 5
spun=$(kicks vcpu_kicks)
echo "spinning: $(tail -n 1 /tmp/guest), $spun kicks"
[ "$spun" -gt 0 ] || fail "guests that spin are not found: $(cat /tmp/guest)"
[ "$(kicks spin_kicks)" -ge "$spun" ] || fail "spin_kicks: $(cat /tmp/status)"

# Beside processes that compute, and a guest that is killed while it spins.
start_hogs 2
./guest --one-process --vms 2 --vcpus 3 --seconds 0 >/dev/null 2>&1 &
guest=$!
sleep 2
advances $hogs
kill -9 $guest
wait $guest
runs || fail "it has ended"
end_hogs
stop_sched

# Another start attaches again, and one that does not look for busy waiting has no use of it.
start_sched --spin=off
grep -q "guests that spin" $log && fail "looked at with --spin=off"
run_guest --vms 1 --vcpus 5 --seconds 2
[ "$(kicks vcpu_kicks)" = 0 ] || fail "kicks with --spin=off"
stop_sched
rmmod kvm_amd && rmmod kvm || fail "KVM cannot be unloaded after the end"
start_sched
grep -q "guests that spin" $log && fail "found without KVM"
stop_sched
end
