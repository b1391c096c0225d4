# Sourced by the lib.sh of the folders whose tests run in virtual machines. A test ends with 0, with
# 77 if it was skipped (the reason is its last line), or it failed. Post: $here is the test's
# folder, $vm this one, $work a folder that goes when the test ends.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$vm/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export PATH="$HOME/.cargo/bin:$PATH"

. "$vm/verdict.sh"

# need_vm GROUP: of scripts/need.sh, which installs what is missing
need_vm() {
    local tool
    for tool in qemu-system-x86_64 busybox cpio gcc; do
        command -v "$tool" >/dev/null || skip "no $tool: scripts/need.sh $1 installs it"
    done
    local version
    version=$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
    [ "${version:-0}" -ge 10 ] || skip "QEMU ${version:-unknown} is too old, 10 is needed: scripts/need.sh $1"
    [ "$(uname -m)" = x86_64 ] || skip "this is no x86-64 machine"
}

# kernel [--kvm] VERSION: its folder, as of kernel.sh
kernel() {
    "$vm/kernel.sh" "$@" 2>"$work/kernel.log" || skip "no kernel ${!#}: $(tail -n 1 "$work/kernel.log")"
}

# The binary under test, small enough for a machine that lives in memory: $work/lissom
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
