#!/bin/sh
# Build and run the tests of runtime/patch. Last line: `N passed, M failed`. Exits non-zero on
# failure. -v shows every check and what was patched.
set -u
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0
failed=0
verbose=${1:-}

# step NAME COMMAND...: one test
step() {
    name=$1
    shift
    if "$@" >"$out/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok: $name"
        [ -z "$verbose" ] || cat "$out/log"
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        tail -n 40 "$out/log"
    fi
}

./build.sh "$out" || exit 1
lib=$out/libpatch.a
warn="-g -O2 -Wall -Wextra -Werror -Wno-missing-field-initializers"
set -e
gcc -shared -nostdlib -o "$out/libsites.so" sites.S
# -fPIC: the offsets in the table of shapes are relative to its address, so the linker must not copy
# it into the program
gcc $warn -fPIC -o "$out/shapes" shapes.c harness.S entry.S "$lib" -L"$out" -lsites -Wl,-rpath,"$out"
gcc $warn -o "$out/writes" writes.c "$lib" -pthread
gcc $warn -fPIC -fvisibility=hidden -shared -o "$out/probe.so" probe.c entry.S "$lib" -Wl,-z,now
gcc $warn -o "$out/workload" workload.c -pthread
gcc $warn -fno-pie -no-pie -o "$out/workload-fixed" workload.c -pthread
gcc $warn -fopenmp -o "$out/teams" teams.c
g++ $warn -o "$out/throws" throws.cc
set +e

# Check that the patcher needs no symbol but dl_iterate_phdr (and _r_debug, if present). The linker
# itself provides the address of the object's header.
only_dl_iterate_phdr() {
    ld -r -o "$out/all.o" "$out"/zydis-*.o "$out"/patch-*.o "$out"/prim-mem.o &&
        [ "$(nm -u "$out/all.o" | grep -v -e _GLOBAL_OFFSET_TABLE_ -e __ehdr_start -e ' w _r_debug$' | tr -d ' ')" = Udl_iterate_phdr ]
}
step "no libc but dl_iterate_phdr" only_dl_iterate_phdr

step "shapes: $("$out/shapes" | tail -n 1)" "$out/shapes" $verbose
step "shapes, by mprotect" env BY_MPROTECT=1 "$out/shapes" $verbose
step "writes: $("$out/writes" | tail -n 1)" "$out/writes"

for class in 0 1; do
    for program in workload workload-fixed teams throws; do
        step "$program, class $class" env LD_PRELOAD="$out/probe.so" PROBE_CLASS=$class "$out/$program"
    done
done
for program in workload workload-fixed teams throws; do
    step "$program, by mprotect" env LD_PRELOAD="$out/probe.so" PROBE_MPROTECT=1 PROBE_CLASS=1 "$out/$program"
done
step "patched and taken back, by mprotect" env LD_PRELOAD="$out/probe.so" PROBE_MPROTECT=1 PROBE_UNDO=1 "$out/workload"
step "patched and taken back" env LD_PRELOAD="$out/probe.so" PROBE_UNDO=1 "$out/workload"

# Patch every library that the machine's own programs use; none may keep a site that could be a
# futex call.
no_unsafe() {
    LD_PRELOAD="$out/probe.so $1" PROBE_REPORT=2 PROBE_CLASS=1 /bin/true 2>"$out/report"
    grep -E '^(object|total|left)' "$out/report"
    grep -q 'unsafe no ' "$out/report"
}
for name in libc.so.6 libgomp.so.1 libstdc++.so.6 libpthread.so.0; do
    step "no unsafe site: $name" no_unsafe "$name"
    [ "$name" != libgomp.so.1 ] || grep -E '^(object|total)' "$out/report"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
