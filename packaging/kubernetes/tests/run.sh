#!/usr/bin/env bash
# Tests the node agent: its own unit tests, then the real one in containerd's NRI and in a real containerd. `run.sh -run NAME` runs some.
# As root, because the agent takes only a runtime that belongs to root, and containers need it; otherwise those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")"

if [ -z "${LISSOM_TEST_BIN:-}" ]; then
    target=$(cd ../../.. && realpath "${CARGO_TARGET_DIR:-target}")
    LISSOM_TEST_BIN=$target/release/lissom
fi
export LISSOM_TEST_BIN

(cd ../agent && go vet ./... && go test -count=1 ./...)
go vet ./...
go test -count=1 -timeout 30m "$@" .
