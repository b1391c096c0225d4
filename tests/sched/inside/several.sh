# several.sh RUNS ROUNDS WORK CONFIG...: prints `figure|LABEL|WORKLOAD|us a round` for the kernel's
# own scheduler and for each CONFIG in turn.
. ./lib.sh

runs=$1 rounds=$2 work=$3
shift 3

measure() {
    local workload
    for workload in barrier cond mutex; do
        ./sync $workload --threads 16 --rounds "$rounds" --work "$work" >/tmp/report || fail "$1: $workload"
        sed -n "s/.*\"us_per_round\": *\([0-9.]*\).*/figure|$1|$workload|\1/p" /tmp/report
    done
}

i=0
while [ $i -lt "$runs" ]; do
    i=$((i + 1))
    measure EEVDF
    for config in "$@"; do
        start_sched $config
        sleep 0.5
        measure "sched $config"
        stop_sched
    done
done
end
