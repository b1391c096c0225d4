# Nice values. A task with the smallest weight beside many others gets to run long before the
# kernel's watchdog considers it lost. A new nice value applies to a computing task from then on.
. ./lib.sh

# ticks_of SECONDS PID: set $ticks to the CPU time that the process gets in this time
ticks_of() {
    local before
    get_ticks "$2"
    before=$ticks
    sleep "$1"
    get_ticks "$2"
    ticks=$((ticks - before))
}

wrong=
start_hogs 1
low=${hogs# }
renice -n 19 -p $low >/dev/null || fail "renice"
start_sched --timeout=3s
# 30 threads with a slice of 3 ms, each 68 times as heavy: the task's fair turn comes after 6 s.
start_hogs 30
for round in 1 2; do
    ticks_of 3 $low
    echo "nice 19, beside 30: $ticks ticks in 3 s"
    runs || { wrong="nice 19 is lost;" && break; }
done
if [ -n "$wrong" ]; then
    cat $log
    ended 3
    start_sched
fi
# A killed process need not have run.
kill $hogs
wait $hogs
hogs=

start_hogs 2
sleep 1
low=${hogs##* }
renice -n 19 -p $low >/dev/null
sleep 1
ticks_of 3 $low
echo "nice 19 since it computes, beside one: $ticks ticks in 3 s"
[ $ticks -lt 75 ] || wrong="$wrong a new nice value has no effect"
end_hogs

start_hogs 1
low=${hogs# }
renice -n 19 -p $low >/dev/null
start_hogs 1
sleep 1
ticks_of 3 $low
echo "nice 19 since it began, beside one: $ticks ticks in 3 s"
[ $ticks -lt 75 ] || wrong="$wrong a nice value from the beginning has no effect"
[ -z "$wrong" ] || fail "$wrong"
stop_sched
end_hogs
end
