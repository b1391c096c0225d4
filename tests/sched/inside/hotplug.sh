# CPUs go offline and come back, with tasks pinned to them and others; the scheduler must keep
# running.
. ./lib.sh
cpu1=/sys/devices/system/cpu/cpu1/online
start_sched
start_hogs 4
taskset 2 ./sync hog &
hogs="$hogs $!"
./sync barrier --threads 16 --rounds 1000000 &
barrier=$!
for round in 1 2 3; do
    echo 0 >$cpu1 || fail "CPU 1 does not go"
    advances $hogs $barrier
    runs || fail "ended when CPU 1 went"
    echo 1 >$cpu1 || fail "CPU 1 does not come back"
    advances $hogs $barrier
    runs || fail "ended when CPU 1 came"
done
# Start without a CPU that comes online later.
stop_sched
echo 0 >$cpu1
start_sched
echo 1 >$cpu1
advances $hogs
./tasks pinned 1 1 || fail "a task of the CPU that came later"
stop_sched
kill $barrier
wait $barrier
end_hogs
end
