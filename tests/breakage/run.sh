#!/usr/bin/env bash
# Break lissom on purpose, one way at a time, and check that the cases notice.
#
#     tests/breakage/run.sh [NAME ...]      all breakages, or the named ones
#
# Works on a copy of the tree in target/breakage, with a build folder of its own. Prints a line for
# each breakage. Last line: `N noticed, M unnoticed`. Exits with 1 if one was not noticed.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-$PWD/target}
copy=$target/breakage/source
export CARGO_TARGET_DIR=$target/breakage/build

# change FILE SED-SCRIPT: edit the copy's file; fail if that changes nothing
change() {
    cp "$copy/$1" "$copy/$1.before"
    sed -i -E "$2" "$copy/$1"
    if cmp -s "$copy/$1" "$copy/$1.before"; then
        echo "tests/breakage: nothing to break in $1: adapt the pattern $2" >&2
        exit 2
    fi
    rm "$copy/$1.before"
}

# begin_with STATEMENT FILE FUNCTION: insert STATEMENT at the beginning of the function whose
# definition starts with FUNCTION (a regular expression)
begin_with() {
    change "$2" "/^$3/,/^\{/s/^\{/{\n    $1/"
}

# Breakages: each makes one change to the copy.
constructor_returns_at_once() {
    begin_with 'return;' runtime/lissom.c '__attribute__\(\(constructor\)\) static void start'
}
second_thread_is_not_managed() {
    begin_with 'return;' runtime/lissom.c 'static void begin\('
}
patching_finds_no_site() {
    begin_with 'return end;' runtime/patch/scan.c 'static uintptr_t find_syscall'
}
every_thread_is_pinned() {
    change runtime/sched/thread.c 's/if \(sched\.level == LEVEL_KERNEL\)/if (true)/'
}
doctor_says_active() {
    change crates/lissom/src/doctor/mod.rs 's/let active = findings\.clone.*/let active = findings.clone().count() > 0;/'
}
user_switch_becomes_kernel_hand_off() {
    change runtime/sched/carrier.c 's/if \(thread_stays\(t\) \|\| t->deadline\)/if (true)/'
}

# noticed_by BREAKAGE: print a part of the names of the cases of which at least one has to fail
noticed_by() {
    case $1 in
    doctor_says_active) echo cli_doctor:: ;;
    # Some threads then wait for ever, so that each case runs into its timeout.
    user_switch_becomes_kernel_hand_off) echo pthread_barrier ;;
    *) echo pthread_ ;;
    esac
}

[ $# -gt 0 ] || set -- constructor_returns_at_once second_thread_is_not_managed \
    patching_finds_no_site every_thread_is_pinned doctor_says_active user_switch_becomes_kernel_hand_off
noticed=0 unnoticed=0
for breakage; do
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z | xargs -0 cp --parents -t "$copy"
    "$breakage"
    log=$target/breakage/$breakage.log
    # A tree that does not build would fail for the wrong reason.
    (cd "$copy" && cargo build --locked --quiet && cargo test --locked --quiet --test cases --no-run) >"$log" 2>&1 ||
        { echo "tests/breakage: $breakage does not build: $log" >&2; exit 2; }
    (cd "$copy" && cargo test --locked --test cases -- "$(noticed_by "$breakage")") >"$log" 2>&1 || true
    said=$(grep -E '^[0-9]+ passed, [0-9]+ failed, ' "$log" | tail -n 1 || true)
    case $said in
    "") echo "tests/breakage: no case ran: $log" >&2 && exit 2 ;;
    *", 0 failed"*) unnoticed=$((unnoticed + 1)) && echo "UNNOTICED: $breakage: $said" ;;
    *) noticed=$((noticed + 1)) && echo "noticed: $breakage: $said" ;;
    esac
done
echo "$noticed noticed, $unnoticed unnoticed"
[ "$unnoticed" -eq 0 ]
