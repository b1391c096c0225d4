#!/usr/bin/env bash
# Runs tests/sched/test_*.sh, or those that are named, in virtual machines with each of the kernels,
# and says of each: ok, skipped (why) or FAILED.
#     [KERNELS="6.18 7.3"] tests/sched/run.sh [NAME]...       NAME: what is between test_ and .sh
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
for kernel in ${KERNELS:-6.18 7.3}; do
    KERNEL=$kernel run_tests . "${CARGO_TARGET_DIR:-../../target}/vm/logs/$kernel" "$kernel " "$@"
done
end_tests
