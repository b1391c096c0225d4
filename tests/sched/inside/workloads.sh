# Programs that check their own results: more threads than CPUs, each way to wait.
. ./lib.sh
start_sched
for rounds in 300 3000; do
    ./sync barrier --threads 16 --rounds $((rounds / 3)) --work 1000 &&
        ./sync cond --threads 16 --rounds $((rounds / 3)) --work 1000 &&
        ./sync mutex --threads 16 --rounds $((rounds * 10)) --work 100 &&
        ./sync sem --threads 16 --rounds $((rounds / 3)) --work 100 &&
        ./sync queue --threads 16 --rounds $((rounds * 3)) --work 100 &&
        ./spin pipeline --threads 4 --rounds $((rounds / 100)) &&
        ./spin barrier --threads 4 --rounds $((rounds / 100)) || fail "a workload"
done
# All at the same time.
all=
for pattern in barrier cond mutex sem queue; do
    ./sync $pattern --threads 8 --rounds 500 --work 100 &
    all="$all $!"
done
children $all
runs || fail "it has ended"
stop_sched
end
