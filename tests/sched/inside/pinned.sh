# Tasks with an affinity run only where it allows, also while it changes. Policies and nice values
# change.
. ./lib.sh
start_sched
start_hogs 3
taskset 1 ./sync hog &
hogs="$hogs $!"
all=
for cpu in 0 0 1 1 1; do
    ./tasks pinned $cpu 6 &
    all="$all $!"
done
for number in 1 2 3; do
    ./tasks wander 6 &
    all="$all $!"
    ./tasks policies 6 &
    all="$all $!"
done
# Move all tasks to one side and back, from outside.
round=0
while [ $round -lt 10 ]; do
    round=$((round + 1))
    for hog in $hogs; do
        taskset -p $((round % 2 + 1)) "$hog" >/dev/null
    done
    usleep 200000
done
advances $hogs
children $all
runs || fail "it has ended"
stop_sched
end_hogs
end
