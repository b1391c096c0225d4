# Sourced by the lib.sh of folders whose tests tests.sh runs: how a test says that it was skipped,
# or that it failed, and ends.
skip() {
    echo "$*"
    exit 77
}

fail() {
    echo "$*"
    exit 1
}
