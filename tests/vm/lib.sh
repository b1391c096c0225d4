# Sourced by the lib.sh of folders whose tests run in virtual machines. A test exits with 0 if it
# passed, with 77 if it was skipped (its last line is the reason), otherwise it failed. Sets $here
# to the test's folder, $vm to this one, and $work to a folder that is removed when the test ends.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$vm/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export PATH="$HOME/.cargo/bin:$PATH"

. "$vm/verdict.sh"

# need_vm GROUP: check for tools; scripts/need.sh GROUP installs them
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

# kernel [--kvm] VERSION: print the kernel's folder (see kernel.sh)
kernel() {
    "$vm/kernel.sh" "$@" 2>"$work/kernel.log" || skip "no kernel ${!#}: $(tail -n 1 "$work/kernel.log")"
}

# Build the binary under test, stripped for a machine that resides in memory: $work/lissom
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
