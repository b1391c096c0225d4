# vcpus.sh: guests with more vCPUs than CPUs. Guests that wait for a lock with PAUSE are preempted
# and make progress; guests that never wait are left alone.
. ./lib.sh

skip() {
    echo "$*"
    exit 77
}

# kicks COUNT: print this count of the status
kicks() {
    lissom sched status --json >/tmp/status || fail "lissom sched status: $?"
    tr ',' '\n' </tmp/status | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -n 1
}

# guest_says NAME: print a number of the guest's last report
guest_says() {
    sed -n "s/^all:.*\b$1 \([0-9]*\).*/\1/p" /tmp/guest
}

# run_guest OPTION...: run the guest; it has to exit with 0 and to acquire its lock
run_guest() {
    ./guest "$@" >/tmp/guest 2>&1 || { cat /tmp/guest; fail "guest $*: $?"; }
    runs || fail "it has ended"
    [ "$(guest_says acquired)" -gt 0 ] || fail "guest $*: $(cat /tmp/guest)"
}

[ -e /dev/kvm ] || skip "KVM does not load here"
grep -qw pausefilter /proc/cpuinfo || skip "this kernel does not believe that the emulated CPU has a pause filter"

start_sched
cat $log
grep -q "spinning guests are detected" $log || fail "guests are not scanned"
run_guest --vms 4 --vcpus 1 --seconds 4
[ "$(guest_says pauses)" = 0 ] || fail "a lock of one vCPU is waited for: $(cat /tmp/guest)"
[ "$(kicks vcpu_kicks)" = 0 ] || fail "guests that do not spin: $(kicks vcpu_kicks) kicks"
echo "without spinning: $(tail -n 1 /tmp/guest), $(kicks vcpu_kicks) kicks"

run_guest --vms 1 --vcpus 5 --seconds 5
spun=$(kicks vcpu_kicks)
echo "spinning: $(tail -n 1 /tmp/guest), $spun kicks"
[ "$spun" -gt 0 ] || fail "spinning guests are not detected: $(cat /tmp/guest)"
[ "$(kicks spin_kicks)" -ge "$spun" ] || fail "spin_kicks: $(cat /tmp/status)"

# Beside processes that compute, with a guest that is killed while it spins.
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

# The next start attaches again; with --spin=off it need not.
start_sched --spin=off
grep -q "spinning guests" $log && fail "scanned with --spin=off"
run_guest --vms 1 --vcpus 5 --seconds 2
[ "$(kicks vcpu_kicks)" = 0 ] || fail "kicks with --spin=off"
stop_sched
rmmod kvm_amd && rmmod kvm || fail "KVM cannot be unloaded after the end"
start_sched
grep -q "spinning guests" $log && fail "detected without KVM"
stop_sched
end
