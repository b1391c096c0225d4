#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests of the spin-loop interpreter: run.sh [SAMPLES]. FUZZ: seconds to fuzz [default: 2].
# LOOP_FLAGS: further compiler flags for the loops, such as -march=haswell. Last line: `N passed, M
# failed`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ -n "${OUT:-}" ]; then
    out=$OUT
    mkdir -p "$out"
else
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
samples=${1:-50}
flags() { "$root/scripts/flags.sh" "$@"; }
zydis=${ZYDIS:-$(flags zydis-sources)} || { echo "0 passed, 1 failed"; exit 1; }
cc=${CC:-gcc}
includes="-I$root/runtime -isystem $zydis/include -isystem $zydis/dependencies/zycore/include"
fail() { echo "build failed: $*"; echo "0 passed, 1 failed"; exit 1; }
for f in decode machine execute bits vector counter delay hint prove depends explore; do
    # shellcheck disable=SC2046,SC2086 # words
    $cc $(flags runtime ours zydis) $includes -c "$root/runtime/spin/$f.c" -o "$out/spin-$f.o" || fail $f
done
for f in Decoder DecoderData MetaInfo Mnemonic Register Segment SharedData String Utils; do
    # shellcheck disable=SC2046,SC2086 # words
    [ -f "$out/zydis-$f.o" ] ||
        $cc $(flags runtime theirs zydis) $includes -I"$zydis/src" -c "$zydis/src/$f.c" \
            -o "$out/zydis-$f.o" || fail $f
done
# shellcheck disable=SC2046,SC2086 # words
$cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(flags zydis) $includes -I"$here" -c "$here/driver.c" -o "$out/driver.o" || fail driver
$cc -std=gnu11 -O2 -fPIC -shared "$here/plt.c" -o "$out/libplt.so" || fail plt
passed=0 failed=0
tally() {
    # shellcheck disable=SC2046 # words
    set -- $(tail -n 1 "$1")
    if [ "${2:-}" = passed, ]; then passed=$((passed + $1)) failed=$((failed + $3)); else failed=$((failed + 1)); fi
}
clang=$(command -v clang || compgen -G '/usr/bin/clang-[0-9]*' | grep -E 'clang-[0-9]+$' | tail -n 1)
for c in gcc ${clang:-}; do
    command -v "$c" >/dev/null || continue
    for level in -O0 -O1 -O2 -O3 -Os; do
        name=$(basename "$c")$level
        for kind in wait work; do
            $c -std=gnu11 -D_GNU_SOURCE $level ${LOOP_FLAGS:-} -w -I"$here" -c "$here/loops_$kind.c" -o "$out/$kind$name.o" || fail "$name"
        done
        $cc -pthread "$out/driver.o" "$out/wait$name.o" "$out/work$name.o" "$out"/spin-*.o "$out"/zydis-*.o \
            -L"$out" -lplt -Wl,-rpath,"$out" -o "$out/test$name" || fail "$name"
        timeout 30 "$out/test$name" "$name" "$samples" >"$out/log" 2>&1 || true
        grep -v ' passed, ' "$out/log"
        tally "$out/log"
        timeout 20 "$out/test$name" check "$name" 1000 >"$out/log" 2>&1 || true
        grep -v ' passed, ' "$out/log"
        tally "$out/log"
    done
done
timeout $((${FUZZ:-2} + 20)) "$out/testgcc-O2" fuzz "${FUZZ:-2}" >"$out/log" 2>&1 || echo "fuzz: ended with $?"
grep -v ' passed, ' "$out/log"
tally "$out/log"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
