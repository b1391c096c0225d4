#!/usr/bin/env bash
# Tests the node agent: the real one in containerd's NRI and in a real containerd. `run.sh -run
# NAME` runs some. As root, because the agent takes only a runtime that belongs to root, and
# containers need it; otherwise those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")"

target=$(cd ../../.. && realpath -m "${CARGO_TARGET_DIR:-target}")
export LISSOM_TEST_BIN=${LISSOM_TEST_BIN:-$target/release/lissom}

old=$target/kubernetes/old-glibc
mkdir -p "${old%/*}"
# Made anew when the program, or what it is told by the library, has changed.
if { [ "$old/show" -nt programs/show.c ] && [ "$old/show" -nt ../../../runtime/abi.h ]; } || ./old-glibc.sh "$old"; then
    export LISSOM_TEST_OLD_GLIBC=$old
fi

(cd ../agent && go vet ./...)
go vet ./...

# containerd's shims and their containers are nobody's children: they would outlive tests that are
# interrupted, or that run into their time limit. In a PID namespace they end with its first
# process, and so do the mounts in its mount namespace. That process is a shell, because it has to
# reap them.
alone=()
if [ "$(id -u)" = 0 ]; then
    alone=(unshare --pid --fork --kill-child --mount-proc)
fi
TMPDIR=$(mktemp -d)
export TMPDIR
clean() {
    rm -rf "$TMPDIR"
    # Deepest first. In a group that is not empty something still runs: that is told by the tests.
    find /sys/fs/cgroup -depth -type d -path '*/lissom-kubernetes-test*' -exec rmdir {} + 2>/dev/null || true
}
trap clean EXIT
"${alone[@]}" bash -c 'go test -count=1 -timeout 30m "$@" .; exit $?' run.sh "$@"
