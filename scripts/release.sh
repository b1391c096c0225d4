#!/usr/bin/env bash
# Builds target/release/lissom, the binary that is used and handed out.
#
# It carries its libc: it runs wherever Linux does, with an older glibc, with another libc, or with
# none, and starts 1.1 ms sooner than with three libraries to load and 10,000 addresses to relocate
# (docs/start.md). `cargo build --release` makes one that is linked dynamically.
#
# The flags are for this target: build scripts and macros, which cargo loads as libraries, are built
# without them. No paths of this machine go into the binary.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
triple=x86_64-unknown-linux-gnu

[ "$("${CC:-cc}" -print-file-name=libc.a)" != libc.a ] || {
    echo "there is no libc.a: install it (Fedora: glibc-static), or use cargo build --release" >&2
    exit 1
}

flags="-C target-feature=+crt-static -C relocation-model=static"
cflags=${CFLAGS:-}
cargo fetch --locked --quiet
for from in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    flags+=" --remap-path-prefix=$from=crates"
    cflags+=" -ffile-prefix-map=$from=crates"
done
for from in "$PWD" "$(realpath -m "$target")"; do
    flags+=" --remap-path-prefix=$from=."
    cflags+=" -ffile-prefix-map=$from=."
done
export RUSTFLAGS="$flags ${RUSTFLAGS:-}" CFLAGS=$cflags
cargo build --release --locked --target "$triple" "$@"
install -C -D "$target/$triple/release/lissom" "$target/release/lissom"
