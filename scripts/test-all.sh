#!/usr/bin/env bash
# Run everything that can be tested on this machine, for a nightly run (hours).
#
#     scripts/test-all.sh [PART ...]      all parts, or the named ones
#
# Continues after a failure. The output of each part is in target/test-all/PART.log. Prints a line
# for each part, with its last line of output. Last line: `N parts passed, M failed`. Exits with 1
# if one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
logs=${CARGO_TARGET_DIR:-$PWD/target}/test-all
mkdir -p "$logs"

# The commands of each part, as in the Makefile.
run_part() {
    case $1 in
    lint) make lint ;;
    unit) make test-unit ;;
    models) bash docs/model/run.sh small && bash docs/model/run.sh large ;;
    drivers) make test-drivers ;;
    cases) LISSOM_TEST_ALL=1 make test-cases ;;
    breakage) bash tests/breakage/run.sh ;;
    vm) make test-vm ;;
    kvm) make test-kvm ;;
    slurm) make test-slurm ;;
    kubernetes) make test-kubernetes ;;
    recipes) make test-recipes ;;
    dashboard) make test-dashboard ;;
    dist) make test-dist ;;
    conformance) make conformance ;;
    fuzz) make fuzz ;;
    *) echo "no such part: $1" >&2 && return 2 ;;
    esac
}

passed=0 failed=0
[ $# -gt 0 ] || set -- lint unit models drivers cases breakage vm kvm slurm kubernetes recipes dashboard \
    dist conformance fuzz
for part; do
    began=$SECONDS
    # Use another shell: in an `if` of this one, -e would not end it at the first failure.
    if (export -f run_part && bash -euo pipefail -c "run_part $part") >"$logs/$part.log" 2>&1; then
        passed=$((passed + 1)) result=passed
    else
        failed=$((failed + 1)) result=FAILED
    fi
    printf '%-12s %s in %4d s: %s\n' "$part" "$result" $((SECONDS - began)) "$(tail -n 1 "$logs/$part.log")"
done
echo "$passed parts passed, $failed failed"
[ "$failed" -eq 0 ]
