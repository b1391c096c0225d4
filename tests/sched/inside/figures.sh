# figures.sh LABEL START RUNS ROUNDS_PERCENT SWITCHES WORKLOADS: prints
# `figure|LABEL|WORKLOAD|us a round`. START: options of `lissom sched start`, or none.
. ./lib.sh

label=$1 start=$2 runs=$3 rounds=$4 switches=$5 workloads=$6

# The kernel's own scheduler takes 3 s for 20 rounds. Detection of busy-waiting needs more rounds.
case $start in
none | *--spin=off*) pipeline_rounds=20 ;;
*) pipeline_rounds=500 ;;
esac

# run FOLDER PROGRAM_SUFFIX LABEL [COMMAND]...: run programs by their paths, since BusyBox has a
# sync of its own, which it prefers
run() {
    local bin=$1 suffix=$2 label=$3 workload i command
    shift 3
    for workload in $workloads; do
        case $workload in
        barrier | cond) command="$bin/sync$suffix $workload --threads 16 --rounds $((500 * rounds / 100)) --work 0" ;;
        # Long enough for a preemption in the critical section now and then; otherwise no thread
        # waits.
        mutex) command="$bin/sync$suffix mutex --threads 16 --rounds $((5000 * rounds / 100)) --work 1000" ;;
        # Without PAUSE: its emulation takes a hundred times as long as its counted time.
        pipeline) command="$bin/spin$suffix pipeline --threads 8 --rounds $((pipeline_rounds * rounds / 100)) --work 0 --no-pause" ;;
        *) fail "there is no $workload" ;;
        esac
        i=0
        while [ $i -lt "$runs" ]; do
            i=$((i + 1))
            "$@" $command >/tmp/report || fail "$label: $command"
            sed -n "s/.*\"us_per_round\": *\([0-9.]*\).*/figure|$label|$workload|\1/p" /tmp/report
        done
    done
}

[ "$start" = none ] || start_sched $start
# Let the work of startup finish.
sleep 2
run /files "" "$label"
for mode in $switches; do
    run /bin -dynamic "$label, run --switch=$mode" lissom run --switch="$mode" --
done
[ "$start" = none ] || stop_sched
end
