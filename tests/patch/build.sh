#!/usr/bin/env bash
# Build the patching code and Zydis into one archive, as build.rs does: build.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runtime=$here/../../runtime
out=$1
mkdir -p "$out"
zydis=$(compgen -G "${CARGO_HOME:-$HOME/.cargo}/registry/src/*/zydis-4.1.1/zydis-c" | head -n 1)
includes="-isystem $zydis/include -isystem $zydis/dependencies/zycore/include"
defines="-DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -DZYDIS_DISABLE_FORMATTER -DZYDIS_DISABLE_ENCODER -DNDEBUG -D_GNU_SOURCE"
common="-std=gnu11 -O2 -g -fPIC -fvisibility=hidden -fno-stack-protector -mgeneral-regs-only"
for f in Decoder DecoderData SharedData Register; do
    o=$out/zydis-$f.o
    [ "$o" -nt "$zydis/src/$f.c" ] || gcc $common $defines $includes -I"$zydis/src" -c "$zydis/src/$f.c" -o "$o"
done
for f in "$runtime"/patch/*.c "$runtime"/prim/maps.c "$runtime"/prim/lock.c; do
    gcc $common $defines $includes -I"$runtime" -Wall -Wextra -Werror -Wno-missing-field-initializers -c "$f" -o "$out/patch-$(basename "$f" .c).o"
done
gcc $common -fno-builtin -fno-tree-loop-distribute-patterns -Wall -Wextra -Werror -Wno-missing-field-initializers \
    -c "$runtime/prim/mem.c" -o "$out/prim-mem.o"
rm -f "$out/libpatch.a"
ar rcs "$out/libpatch.a" "$out"/*.o
