#!/usr/bin/env bash
# Run tests/sched/test_*.sh, or the named ones, in virtual machines with each of the kernels.
# Prints for each: ok, skipped (why) or FAILED.
#     [KERNELS="6.18 7.3"] tests/sched/run.sh [NAME]...       NAME: the part between test_ and .sh
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
for kernel in ${KERNELS:-6.18 7.3}; do
    KERNEL=$kernel run_tests . "${CARGO_TARGET_DIR:-../../target}/vm/logs/$kernel" "$kernel " "$@"
done
end_tests
