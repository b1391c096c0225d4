# Sourced by tests that wait for something to become true.

# until_true SECONDS COMMAND...: wait until the command succeeds; return false on timeout
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}
