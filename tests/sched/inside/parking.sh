# parking.sh PROGRAM...: run programs of tests/programs with more threads than CPUs, first while the
# scheduler runs, then while it is started and stopped repeatedly.
. ./lib.sh

# one PROGRAM: run it; a lost thread would make it hang
one() {
    THREADS=16 timeout -s KILL 60 lissom run --switch=kernel -- "/bin/$1" >/tmp/out 2>&1 || {
        local code=$?
        cat /tmp/out
        fail "$1 ended with $code"
    }
}

count() {
    lissom sched status --json | sed -n "s/.*\"$1\": *\([0-9]*\),*$/\1/p" | head -n 1
}

start_sched
for program in "$@"; do
    one "$program"
done
[ "$(count unparks)" -gt 100 ] || fail "hardly anybody was parked: $(count unparks)"
stop_sched

# The scheduler is started and stopped repeatedly.
: >/tmp/going
while [ -e /tmp/going ]; do
    timeout 3 lissom sched start >/tmp/coming 2>&1
    sleep 0.3
done &
coming=$!
for program in "$@"; do
    one "$program"
done
rm /tmp/going
wait $coming
end
