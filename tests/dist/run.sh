#!/usr/bin/env bash
# Runs tests/dist/test_*.sh, or those that are named, with the files of target/dist (`make dist`),
# and says of each: ok, skipped (why) or FAILED. What they showed is kept in target/dist-test/logs.
#     tests/dist/run.sh [NAME]...       NAME: what is between test_ and .sh
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
run_tests . "${CARGO_TARGET_DIR:-../../target}/dist-test/logs" "" "$@"
end_tests
