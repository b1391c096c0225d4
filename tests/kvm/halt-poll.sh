#!/usr/bin/env bash
# Tests `lissom kvm halt-poll` on a real KVM, in a virtual machine:
#     tests/kvm/halt-poll.sh [--kernel VERSION] [LISSOM]
# Sets values and reads them back from the kernel. Checks that auto follows VMs with short and then
# long sleeps, and that its values are reset after SIGTERM, SIGHUP and kill -9. LISSOM: the binary
# [default: target/debug/lissom]. Exit code: 0: passed; 1: failed; 125: the machine did not start.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
kernel=6.12
[ "${1:-}" != --kernel ] || { kernel=$2; shift 2; }
lissom=${1:-$target/debug/lissom}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -o "$work/guest" "$here/guest.c"
strip -o "$work/lissom" "$lissom"

mkdir "$work/files"
cat >"$work/files/run.sh" <<'INSIDE'
file=/sys/module/kvm/parameters/halt_poll_ns
wrong=0
check() { # what it is about, what it is, what it has to be
    if [ "$2" = "$3" ]; then echo "   ok $1: $2"; else echo "WRONG $1: $2, not $3"; wrong=1; fi
}
# await CONDITION: wait up to 20 s
await() {
    turns=0
    until eval "$1"; do
        turns=$((turns + 1))
        [ $turns -lt 200 ] || return 1
        sleep 0.1
    done
}
# start SLEEP_US: start auto, and VMs that make it change the value. Emulated VMs take milliseconds
# to wake up from the shortest sleep.
start() {
    lissom kvm halt-poll auto --interval 1s --worth 10ms --max 10ms >/tmp/auto 2>&1 &
    auto=$!
    await '[ $(grep -c . /tmp/auto) -ge 2 ]' || { echo "WRONG auto does not begin"; cat /tmp/auto; exit 1; }
    guest --vcpus 2 --seconds 0 --hlt "$1" >/tmp/guest &
    guest=$!
    await '[ $(cat $file) != 1234 ]' && echo "   ok auto has set $(cat $file) for sleeps of $1 us" || { echo "WRONG auto changes nothing"; cat /tmp/auto; wrong=1; }
}
finish() {
    kill -TERM $guest && wait $guest
    tail -n 1 /tmp/guest
}

lissom kvm halt-poll
lissom kvm halt-poll set --ns 77777 --grow 3 --grow-start 20000 --shrink 4 || wrong=1
check "set, as the kernel has it" "$(cd ${file%/*} && cat halt_poll_ns halt_poll_ns_grow halt_poll_ns_grow_start halt_poll_ns_shrink | tr '\n' ' ')" "77777 3 20000 4 "
lissom kvm halt-poll set --ns 1234 --grow 2 --grow-start 10000 --shrink 0 >/dev/null

start 50
lissom kvm halt-poll auto >/tmp/second 2>&1
check "a second one refuses" "$?" 1
kill -9 $auto
await '[ $(cat $file) = 1234 ]'
check "after kill -9" "$(cat $file)" 1234
finish
await '! grep -q lissom-restore /proc/[0-9]*/comm 2>/dev/null' || { echo "WRONG who puts it back does not end"; wrong=1; }
for signal in TERM HUP; do
    start 50
    kill -$signal $auto
    wait $auto
    check "exit code after SIG$signal" $? 0
    check "after SIG$signal" "$(cat $file)" 1234
    finish
done
cat /tmp/auto

# A value that was set by hand must be left alone.
start 50
echo 4321 >$file
wait $auto
check "exit code when somebody else sets it" $? 1
check "what somebody else has set" "$(cat $file)" 4321
finish

# Sleeps too long for polling: the value must drop to 0.
echo 200000 >$file
lissom kvm halt-poll auto --interval 1s --max 200us --worth 20us >/tmp/auto 2>&1 &
auto=$!
guest --vcpus 2 --seconds 0 --hlt 3000 >/tmp/guest &
guest=$!
await '[ $(cat $file) = 0 ]'
check "for sleeps of 3 ms" "$(cat $file)" 0
kill -INT $auto
wait $auto
check "after SIGINT" "$(cat $file)" 200000
finish
exit $wrong
INSIDE

"$here/../vm/vm.sh" --kvm --kernel "$kernel" --program "$work/guest" --program "$work/lissom" --files "$work/files" -- sh run.sh
