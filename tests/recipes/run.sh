#!/usr/bin/env bash
# Run tests/recipes/test_*.sh, or the named ones. Each takes the text of a recipe from docs/guide,
# and runs it with the real program. Prints for each: ok, skipped (why) or FAILED.
#     tests/recipes/run.sh [NAME]...     NAME: the part between test_ and .sh
#     LISSOM_TEST_BIN=/usr/bin/lissom    another binary than target/release/lissom
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
root=$(cd ../.. && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
lissom=$(realpath "${LISSOM_TEST_BIN:-$target/release/lissom}")
export lissom
unset LISSOM_TEST_BIN # `verbose` reports unknown variables
"$lissom" doctor >/dev/null || {
    echo "lissom is not active on this machine; lissom doctor says why"
    exit 1
}
run_tests . "$target/recipes/logs" "" "$@"
end_tests
