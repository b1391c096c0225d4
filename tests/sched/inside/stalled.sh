# The kernel's watchdog ends a scheduler that runs no task; lissom prints the reason.
STALL=1
. ./lib.sh
start_hogs 3
lissom sched start --fault=stall --timeout=3s >$log 2>&1 &
sched=$!
ended 3
cat $log
grep -qi stall $log || fail "it does not say why it has ended"
end_hogs
# Another start has to work.
start_sched
stop_sched
end
