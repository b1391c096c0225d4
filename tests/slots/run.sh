#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests of the order of ready threads, of timers and of turns. Last line of each: `N passed, M
# failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags=(-std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror)
flags+=(-fsanitize=address -fsanitize=undefined)
for name in ready timers turns; do
    ${CC:-gcc} "${flags[@]}" -I"$root/runtime" \
        "$here/${name}_test.c" "$root/runtime/sched/$name.c" -o "$out/$name"
    timeout 60 "$out/$name"
done
