# Compare the module's counters with those of the tracepoint kvm_exit, for the same VMs.
. ./lib.sh
trace=/sys/kernel/tracing/events/kvm/kvm_exit
load
echo 'hist:keys=exit_reason' >$trace/trigger || fail "no histograms of trace events"
./guest --vms 2 --vcpus 2 --seconds 60 >/dev/null &
wait_for has_vms 2
pids=$(sed -n 's/^vm=\([0-9]*\) .*/\1/p' $device)
for pid in $pids; do wait_for exits_of $pid 300; done
# Stop the VMs outside of guest mode, so that the counts are complete.
kill -STOP $pids
sleep 1
traced=$(sed -n 's/.*exit_reason: *119 *} hitcount: *\([0-9]*\).*/\1/p' $trace/hist)
all=$(sed -n 's/.*hitcount: *\([0-9]*\).*/\1/p' $trace/hist | awk '{ n += $1 } END { print n }')
counted=$(sed -n 's/.* ple=\([0-9]*\).*/\1/p' $device | awk '{ n += $1 } END { print n }')
entries=$(sed -n 's/.* entries=\([0-9]*\).*/\1/p' $device | awk '{ n += $1 } END { print n }')
echo "PAUSE exits: $counted counted, $traced traced; all: $entries counted, $all traced"
[ -n "$traced" ] && [ "$counted" = "$traced" ] || fail "PAUSE exits differ"
[ "$entries" = "$all" ] || fail "exits differ"
[ "$(value missed)" = 0 ] || fail "entries were missed"
for pid in $pids; do
    [ "$(value vcpus $pid)" = 2 ] || fail "vCPUs of $pid"
    # Time before a PAUSE exit is guest time. The window is at least KVM's own.
    [ "$(value before $pid)" -le "$(value guest $pid)" ] || fail "times of $pid"
    [ "$(value spun $pid)" -ge $((3000 * $(value ple $pid))) ] || fail "windows of $pid"
    [ "$(value switches $pid)" -gt 0 ] || fail "no switches of $pid"
done
kill -9 $pids
wait
wait_for has_vms 0
rmmod lissom_ple || fail "rmmod"
check_log
