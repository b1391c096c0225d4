# Sourced by tests/kvm/test_*.sh. A test ends with 0, with 77 if it was skipped (the reason is its last line), or it failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export PATH="$HOME/.cargo/bin:$PATH"

skip() {
    echo "$*"
    exit 77
}

fail() {
    echo "$*"
    exit 1
}

need_vm() {
    local tool
    for tool in qemu-system-x86_64 busybox cpio gcc; do
        command -v "$tool" >/dev/null || skip "no $tool: scripts/need.sh kvm installs it"
    done
    local version
    version=$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
    [ "${version:-0}" -ge 10 ] || skip "QEMU ${version:-unknown} is too old, 10 is needed: scripts/need.sh kvm"
    [ "$(uname -m)" = x86_64 ] || skip "this is no x86-64 machine"
}

# kernel VERSION: its folder, as of kernel.sh
kernel() {
    "$here/kernel.sh" "$1" 2>"$work/kernel.log" || skip "no kernel $1: $(tail -n 1 "$work/kernel.log")"
}

# build_module FOLDER: of kernel.sh. Puts lissom_ple.ko into the files for the machine.
build_module() {
    [ -e "$1/headers" ] || skip "no headers for ${1##*/} that run here"
    make -C "$root" kmod KDIR="$1/headers" KMOD="$work/kmod" >"$work/kmod.log" 2>&1 || fail "$(cat "$work/kmod.log")"
    cp "$work/kmod/lissom_ple.ko" "$work/files/"
}

build_guest() {
    [ -e "$here/guest.c" ] || skip "tests/kvm/guest.c is not there"
    gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -static -o "$work/files/guest" "$here/guest.c"
}

# The binary under test, small enough for a machine that lives in memory.
build_lissom() {
    local built=${LISSOM_TEST_BIN:-}
    if [ -z "$built" ]; then
        (cd "$root" && cargo build --locked --quiet)
        built=$target/debug/lissom
    fi
    strip -o "$work/lissom" "$built"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files"
cp "$here"/inside/* "$work/files/"
