#!/usr/bin/env bash
# Runs tests/kvm/test_*.sh, or those that are named, and says of each: ok, skipped (why) or FAILED.
#     tests/kvm/run.sh [NAME]...       NAME: what is between test_ and .sh
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
run_tests . "${CARGO_TARGET_DIR:-../../target}/vm/logs/kvm" "" "$@"
end_tests
