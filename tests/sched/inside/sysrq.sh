# The system request key S ends the scheduler; lissom prints the reason.
. ./lib.sh
start_sched
start_hogs 3
advances $hogs
echo S >/proc/sysrq-trigger
ended 3
cat $log
grep -qi sysrq $log || fail "it does not say why it has ended"
end_hogs
end
