# Thousands of processes that end at once, before, while and after the scheduler is there.
. ./lib.sh
start_hogs 2
./tasks short 3000 20 &
early=$!
start_sched
./tasks short 4000 50 &
late=$!
./tasks short 1000 1 || fail "one at a time"
children $early $late
./tasks short 1000 20 &
last=$!
stop_sched
children $last
end_hogs
end
