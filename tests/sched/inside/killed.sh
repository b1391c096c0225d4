# When the loader is killed, the kernel's own scheduler takes over, and lissom's can be started
# again.
. ./lib.sh
start_hogs 4
for round in 1 2; do
    start_sched
    ./sync barrier --threads 16 --rounds 200000 &
    barrier=$!
    advances $hogs $barrier
    kill -9 $sched
    ended 137
    advances $hogs $barrier
    kill $barrier
    wait $barrier
done
end_hogs
end
