#!/usr/bin/env bash
# Tests the node agent: the real one in containerd's NRI and in a real containerd. `run.sh -run NAME` runs some.
# As root, because the agent takes only a runtime that belongs to root, and containers need it; otherwise those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")"

target=$(cd ../../.. && realpath -m "${CARGO_TARGET_DIR:-target}")
export LISSOM_TEST_BIN=${LISSOM_TEST_BIN:-$target/release/lissom}

old=$target/kubernetes/old-glibc
mkdir -p "${old%/*}"
if [ -x "$old/show" ] || ./old-glibc.sh "$old"; then
    export LISSOM_TEST_OLD_GLIBC=$old
fi

(cd ../agent && go vet ./...)
go vet ./...
go test -count=1 -timeout 30m "$@" .
