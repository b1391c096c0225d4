#!/usr/bin/env bash
# Run tests/kvm/test_*.sh, or the named ones, and print for each: ok, skipped (why) or FAILED.
#     tests/kvm/run.sh [NAME]...       NAME: the part between test_ and .sh
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
run_tests . "${CARGO_TARGET_DIR:-../../target}/vm/logs/kvm" "" "$@"
end_tests
