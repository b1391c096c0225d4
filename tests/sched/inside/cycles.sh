# Repeated start and stop, under load.
. ./lib.sh
start_hogs 3
./sync barrier --threads 16 --rounds 1000000 &
barrier=$!
for round in 1 2 3 4 5; do
    start_sched
    advances $hogs
    lissom sched status >/tmp/status || fail "lissom sched status: $?"
    stop_sched
    advances $hogs $barrier
done
kill $barrier
wait $barrier
end_hogs
end
