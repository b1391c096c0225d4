# Only the kernel's own scheduler enforces cpu.max. With a limit, lissom's does not start; when a
# limit is set later, lissom's exits.
. ./lib.sh
group=/sys/fs/cgroup/limited
mkdir -p $group
start_hogs 2
echo "50000 100000" >$group/cpu.max
refused
cat /tmp/refusal
grep -q limited /tmp/refusal && grep -q cpu.max /tmp/refusal || fail "the refusal does not say which group"
start_sched --ignore-cpu-max
echo "20000 100000" >$group/cpu.max
sleep 1
runs || fail "ended, in spite of --ignore-cpu-max"
stop_sched

echo "max 100000" >$group/cpu.max
start_sched
advances $hogs
echo "50000 100000" >$group/cpu.max
ended 3
cat $log
grep -q cpu.max $log || fail "it does not say why it has ended"
end_hogs
end
