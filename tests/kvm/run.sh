#!/usr/bin/env bash
# Runs tests/kvm/test_*.sh, or those that are named, and says of each: ok, skipped (why) or FAILED.
#     tests/kvm/run.sh [NAME]...       NAME: what is between test_ and .sh
set -uo pipefail
cd "$(dirname "$0")"

logs=${CARGO_TARGET_DIR:-../../target}/kvm/logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
tests=("$@")
[ $# -gt 0 ] || for file in test_*.sh; do
    name=${file#test_}
    tests+=("${name%.sh}")
done
for name in "${tests[@]}"; do
    [ ! -t 1 ] || printf '%s ...\r' "$name"
    code=0
    bash "test_$name.sh" >"$logs/$name" 2>&1 </dev/null || code=$?
    case $code in
    0) passed=$((passed + 1)) && echo "$name: ok  " ;;
    77) skipped=$((skipped + 1)) && echo "$name: skipped ($(tail -n 1 "$logs/$name"))" ;;
    *) failed=$((failed + 1)) && echo "$name: FAILED" && sed 's/^/    /' "$logs/$name" | tail -n 40 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
