#!/bin/bash
# SPDX-License-Identifier: MIT
# Print compiler flags of crates/build/flags: flags.sh NAME... With `zydis-sources`, print the
# folder of the sources of Zydis, in the version that Cargo.toml pins.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
for name; do
    if [ "$name" = zydis-sources ]; then
        version=$(sed -n 's/^zydis = { version = "=\([0-9.]*\)".*/\1/p' "$root/Cargo.toml")
        sources=$(compgen -G "${CARGO_HOME:-$HOME/.cargo}/registry/src/*/zydis-$version/zydis-c" ||
            true)
        [ -n "$sources" ] || { echo "no sources of Zydis $version: run cargo fetch" >&2; exit 1; }
        head -n 1 <<<"$sources"
    else
        sed -n "s/^$name: //p" "$root/crates/build/flags" | grep .
    fi
done
