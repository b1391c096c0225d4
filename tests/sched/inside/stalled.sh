# A scheduler that runs nobody is ended by the kernel's watchdog, and says why.
STALL=1
. ./lib.sh
start_hogs 3
lissom sched start --fault=stall --timeout=3s >$log 2>&1 &
sched=$!
ended 3
cat $log
grep -qi stall $log || fail "it does not say why it has ended"
end_hogs
# It is no reason not to start again.
start_sched
stop_sched
end
