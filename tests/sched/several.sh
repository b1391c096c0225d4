#!/usr/bin/env bash
# Measure threads that wait for each other on several CPUs, in a virtual machine, under the
# kernel's own scheduler and under lissom's in turn:
#     tests/sched/several.sh [OPTION]... [CONFIG]...
# Each CONFIG holds the options of `lissom sched start` [default: --spin=off].
#
#   --kernel VERSION   [default: 7.3]
#   --cpus N           [default: 8]
#   --runs N           [default: 9]
#   --rounds N         rounds of a run [default: 300]
#   --work N           iterations of all threads together in a round [default: 6000]
#
# Prints us a round: median, minimum and maximum of the runs. There are 16 threads. The CPUs are
# emulated on those of this machine, so times vary by a factor of 2. They mean nothing on a machine
# with other load.
set -euo pipefail

cpus=8 runs=9 rounds=300 work_iterations=6000
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) KERNEL=$2 && shift 2 ;;
    --cpus) cpus=$2 && shift 2 ;;
    --runs) runs=$2 && shift 2 ;;
    --rounds) rounds=$2 && shift 2 ;;
    --work) work_iterations=$2 && shift 2 ;;
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- --spin=off
. "$(dirname "$0")/lib.sh"

build_scheduler
put sync
if ! inside --cpus "$cpus" --timeout 900 -- several.sh "$runs" "$rounds" "$work_iterations" "$@" >"$work/log"; then
    cat "$work/log" >&2
    exit 1
fi
sed -n 's/^figure|//p' "$work/log" | sort -t'|' -k1,2 -k3,3g | medians 36 0
