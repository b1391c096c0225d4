#!/usr/bin/env bash
# Tests the Helm chart, and the real node agent with containerd's NRI and with a real containerd.
# `run.sh -run NAME` runs some tests. Run it as root: the agent accepts only a runtime that belongs
# to root, and containers need it. Otherwise those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")"

target=$(cd ../../.. && realpath -m "${CARGO_TARGET_DIR:-target}")
export LISSOM_TEST_BIN=${LISSOM_TEST_BIN:-$target/release/lissom}

old=$target/kubernetes/old-glibc
mkdir -p "${old%/*}"
# Rebuilt when the program, or the interface of the library that it uses, has changed.
if { [ "$old/show" -nt programs/show.c ] && [ "$old/show" -nt ../../../runtime/abi.h ]; } || ./old-glibc.sh "$old"; then
    export LISSOM_TEST_OLD_GLIBC=$old
fi

(cd ../agent && go vet ./...)
go vet ./...
(cd chart && go vet ./... && go test -count=1 "$@" ./...)

# containerd's shims and their containers are no descendants of the tests: they would outlive tests
# that are interrupted or time out. In a PID namespace they end with its first process, as do the
# mounts in its mount namespace. That process is a shell, because it has to reap them.
alone=()
if [ "$(id -u)" = 0 ]; then
    alone=(unshare --pid --fork --kill-child --mount-proc)
fi
TMPDIR=$(mktemp -d)
export TMPDIR
clean() {
    rm -rf "$TMPDIR"
    # Deepest first. A group that is not empty has running processes, which the tests report.
    find /sys/fs/cgroup -depth -type d -path '*/lissom-kubernetes-test*' -exec rmdir {} + 2>/dev/null || true
}
trap clean EXIT
"${alone[@]}" bash -c 'go test -count=1 -timeout 30m "$@" .; exit $?' run.sh "$@"
