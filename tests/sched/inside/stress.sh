# stress.sh SECONDS: runs those stressors of stress-ng that exercise a scheduler.
. ./lib.sh
start_sched
# --no-rand-seed: the same load each time. No real-time policies (schedpolicy, mutex): under
# emulation, their tasks leave too little CPU time for the others.
stress-ng --no-rand-seed --temp-path /tmp --timeout "$1" --metrics-brief \
    --cpu 2 --switch 2 --futex 2 --fork 1 --pipe 2 --pthread 1 --affinity 2 --yield 2 --sem 2 --timer 1 --sigq 1 \
    --nanosleep 1 --vfork 1 --exec 1 --wait 1 --clone 1 --poll 1 || fail "stress-ng: $?"
runs || fail "it has ended"
stop_sched
end
