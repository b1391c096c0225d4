#!/usr/bin/env bash
# Build the patching code and Zydis into one archive, as build.rs does: build.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runtime=$here/../../runtime
out=$1
mkdir -p "$out"
flags() { "$here/../../scripts/flags.sh" "$@"; }
zydis=$(flags zydis-sources)
includes="-isystem $zydis/include -isystem $zydis/dependencies/zycore/include"
theirs=$(flags runtime theirs zydis)
ours="$(flags runtime ours zydis) -Wno-missing-field-initializers"
# shellcheck disable=SC2086 # words
for f in Decoder DecoderData SharedData Register; do
    o=$out/zydis-$f.o
    [ "$o" -nt "$zydis/src/$f.c" ] || gcc $theirs $includes -I"$zydis/src" -c "$zydis/src/$f.c" -o "$o"
done
for f in "$runtime"/patch/*.c "$runtime"/prim/maps.c "$runtime"/prim/lock.c; do
    gcc $ours $includes -I"$runtime" -c "$f" -o "$out/patch-$(basename "$f" .c).o"
done
gcc $ours -fno-builtin -c "$runtime/prim/mem.c" -o "$out/prim-mem.o"
rm -f "$out/libpatch.a"
ar rcs "$out/libpatch.a" "$out"/*.o
