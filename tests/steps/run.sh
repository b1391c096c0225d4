#!/bin/bash
# SPDX-License-Identifier: MIT
# Print the number of instructions of a futex wait and a wake on one slot, and their functions:
#     run.sh LISSOM [THREADS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for name in ring steps; do
    ${CC:-gcc} -std=gnu11 -O2 -Wall -Wextra -Werror -pthread "$here/$name.c" -o "$out/$name"
done
"$out/steps" "$out" "${1:?the lissom to look at}" run --cpus 1 -- "$out/ring" "${2:-8}"
python3 "$here/by_function.py" "$out"
