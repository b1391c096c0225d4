#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests of the polling time of an idle slot. Last line: `N passed, M failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fsanitize=address,undefined -I"$root/runtime" \
    "$here/haltpoll_test.c" -o "$out/haltpoll_test"
timeout 60 "$out/haltpoll_test"
