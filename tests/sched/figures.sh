#!/usr/bin/env bash
# Measure how fast threads that wait for each other progress under a scheduler, in a virtual
# machine with one CPU that counts its instructions:
#     tests/sched/figures.sh [OPTION]... [CONFIG]...
# Each CONFIG holds the options of `lissom sched start`: tests/sched/figures.sh "--spin=off" "". The
# kernel's own scheduler is measured first.
#
#   --kernel VERSION   [default: 7.3]
#   --runs N           [default: 5]
#   --rounds PERCENT   percentage of the usual rounds in a run [default: 100]
#   --switch MODE      measure also under `lissom run --switch=MODE --`; may be repeated
#   --only NAME        only this workload: barrier, cond, mutex or pipeline; may be repeated
#
# Prints us a round: median, minimum and maximum of the runs. There are 16 threads; the pipeline has
# 8, which busy-wait for flags of their own and never yield. The mutex is held for 4 us at a time.
set -euo pipefail

runs=5 rounds=100 switches='' only=''
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) KERNEL=$2 && shift 2 ;;
    --runs) runs=$2 && shift 2 ;;
    --rounds) rounds=$2 && shift 2 ;;
    --switch) switches+=" $2" && shift 2 ;;
    --only) only+=" $2" && shift 2 ;;
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) break ;;
    esac
done
. "$(dirname "$0")/lib.sh"

if [ $# -gt 0 ] || [ -n "$switches" ]; then
    build_scheduler
else
    cp "$(command -v busybox)" "$work/lissom" # not run
fi
put sync spin
build_dynamic
# Use a new machine for each scheduler, so that none affects the next.
: >"$work/figures"
schedulers=0
one() {
    local label=$1 start=$2 log=$work/log
    if ! inside --icount --timeout 240 --program "$programs/sync-dynamic" --program "$programs/spin-dynamic" -- \
        figures.sh "$label" "$start" "$runs" "$rounds" "$switches" "${only:- barrier cond mutex pipeline}" >"$log"; then
        cat "$log" >&2
        echo "figures.sh: $label failed" >&2
        exit 1
    fi
    sed -n "s/^figure|/$((++schedulers))|/p" "$log" >>"$work/figures"
}
one "EEVDF" none
for config in "$@"; do
    one "sched${config:+ $config}" "$config"
done

sort -t'|' -k1,1n -k2,3 -k4,4g "$work/figures" | cut -d'|' -f2- | medians 48 2
