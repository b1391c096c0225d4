# Thousands of short processes before, during and after a run of the scheduler.
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
