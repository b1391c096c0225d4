#!/bin/bash
# SPDX-License-Identifier: MIT
# Fuzz everything that the runtime reads from other processes: `run.sh [INPUTS [SEED]]`.
# crates/lissom/src/fuzz.rs does the same to the tools. Last line: `N passed, M failed`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
seed=${2:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all -I"$root/runtime" \
    "$here/runtime.c" "$root/runtime/monitor/domain.c" "$root/runtime/cpus/share.c" "$root/runtime/prim/clock.c" -o "$out/runtime" || { echo "0 passed, 1 failed"; exit 1; }
if "$out/runtime" "${1:-100000}" "$seed"; then
    echo "1 passed, 0 failed"
else
    echo "seed $seed"
    echo "0 passed, 1 failed"
    exit 1
fi
