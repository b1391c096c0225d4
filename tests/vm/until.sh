# Sourced by tests that wait for something to become true.

# until_true SECONDS COMMAND... False: it did not within that time.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}
