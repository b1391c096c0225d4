# Who has the least weight still gets to run beside many others, long before the kernel's watchdog would take it for lost.
. ./lib.sh
start_sched
start_hogs 1
renice -n 19 -p $hogs >/dev/null || fail "renice"
low=$hogs
start_hogs 20
for round in 1 2 3; do
    get_ticks $low
    before=$ticks
    sleep 4
    get_ticks $low
    echo "nice 19: $((ticks - before)) ticks in 4 s"
    runs || fail "it has ended"
done
advances $low
stop_sched
end_hogs
end
