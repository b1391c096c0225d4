#!/usr/bin/env bash
# Run tests/dist/test_*.sh, or the named ones, with the files of target/dist (`make dist`). Prints
# for each: ok, skipped (why) or FAILED. Keeps their output in target/dist-test/logs.
#     tests/dist/run.sh [NAME]...       NAME: the part between test_ and .sh
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
run_tests . "${CARGO_TARGET_DIR:-../../target}/dist-test/logs" "" "$@"
end_tests
