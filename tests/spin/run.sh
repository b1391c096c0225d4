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
zydis=${ZYDIS:-$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -maxdepth 3 -type d -name zydis-c 2>/dev/null | sort | tail -n 1)}
[ -d "$zydis" ] || { echo "no Zydis sources: set ZYDIS"; echo "0 passed, 1 failed"; exit 1; }
cc=${CC:-gcc}
both="-std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -fno-stack-protector -fcf-protection=none -mgeneral-regs-only
      -fno-tree-loop-distribute-patterns -I$root/runtime -isystem $zydis/include -isystem $zydis/dependencies/zycore/include
      -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -DNDEBUG -DZYDIS_DISABLE_FORMATTER -DZYDIS_DISABLE_ENCODER"
fail() { echo "build failed: $*"; echo "0 passed, 1 failed"; exit 1; }
for f in decode machine execute bits vector counter delay hint prove depends explore; do
    $cc $both -ftls-model=initial-exec -Wall -Wextra -Werror -c "$root/runtime/spin/$f.c" -o "$out/spin-$f.o" || fail $f
done
for f in Decoder DecoderData MetaInfo Mnemonic Register Segment SharedData String Utils; do
    [ -f "$out/zydis-$f.o" ] || $cc $both -I"$zydis/src" -w -c "$zydis/src/$f.c" -o "$out/zydis-$f.o" || fail $f
done
$cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$root/runtime" -I"$here" -isystem "$zydis/include" \
    -isystem "$zydis/dependencies/zycore/include" -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -c "$here/driver.c" -o "$out/driver.o" || fail driver
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
