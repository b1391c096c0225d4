# Sourced by the lib.sh of folders whose tests tests.sh runs: skip TEXT and fail TEXT report the
# result of a test and end it.
skip() {
    echo "$*"
    exit 77
}

fail() {
    echo "$*"
    exit 1
}
