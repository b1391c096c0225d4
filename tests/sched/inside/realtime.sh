# A real-time task takes a CPU for a while. Tasks on that CPU wait, or migrate if their affinity
# allows it. No task may get lost, and the scheduler must keep running.
. ./lib.sh
start_sched
start_hogs 4
./tasks pinned 1 30 &
pinned=$!
advances $hogs $pinned
./tasks realtime 1 3 &
realtime=$!
advances $hogs
./sync barrier --threads 8 --rounds 200 || fail "a program beside it"
children $realtime
advances $hogs $pinned
children $pinned
stop_sched
end_hogs
end
