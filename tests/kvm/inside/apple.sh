# `lissom kvm apple`: errors, a run without and with --apply, exit by SIGKILL and SIGTERM, and the
# end of a VM.
. ./lib.sh

# says CODE TEXT COMMAND...: expect the exit code, and one line with TEXT on standard error
says() {
    code=$1 text=$2
    shift 2
    "$@" >/tmp/out 2>/tmp/err
    is=$?
    [ $is = "$code" ] || fail "exit code $is: $* $(cat /tmp/err)"
    [ "$(wc -l </tmp/err)" = 1 ] || fail "not one line: $(cat /tmp/err)"
    grep -qF "lissom: $text" /tmp/err || fail "no '$text' in: $(cat /tmp/err)"
}
narrow() {
    awk 'length > 80 { exit 1 }' "$1" || fail "more than 80 columns: $(cat "$1")"
}

rmmod kvm_amd
says 1 "the module lissom_ple is not loaded" lissom kvm apple --duration=1s
insmod /modules/kvm-amd.ko pause_filter_count=0
says 1 "pause-loop exiting is off" lissom kvm apple --duration=1s
rmmod kvm_amd && insmod /modules/kvm-amd.ko
load
lissom kvm apple --duration=300ms >/tmp/out 2>/tmp/err || fail "without VMs: $(cat /tmp/err)"
grep -q "no VM has run" /tmp/out || fail "without VMs: $(cat /tmp/out)"

./guest --vms 2 --vcpus 2 --seconds 0 >/tmp/guest 2>&1 &
guest=$!
wait_for has_vms 2
first=$(sed -n '2s/^vm=\([0-9]*\) .*/\1/p' $device)
second=$(sed -n '3s/^vm=\([0-9]*\) .*/\1/p' $device)
says 1 "there is no process 99999" lissom kvm apple --vm=99999
says 1 "process 1 has no VM" lissom kvm apple --vm=1
says 2 "--upper=70000 is too large for this CPU: 65535 at most" lissom kvm apple --upper=70000
says 1 "cannot open $device: permission denied; run as root" \
	/bin/setpriv --reuid=65534 --clear-groups lissom kvm apple

# Nothing may be changed without --apply.
lissom kvm apple --duration=4s --interval=1s >/tmp/out 2>/tmp/err || fail "$(cat /tmp/err)"
cat /tmp/err /tmp/out
narrow /tmp/out
grep -q "nothing is changed; --apply would try 3000, 3375 and 2625 PAUSEs first" /tmp/err || fail "no word of it"
grep -Eq "^ *$first guest +2 +[0-9]+ +[0-9]+ .* - +-$" /tmp/out || fail "no line for $first"
[ "$(value applied $first)$(value applied $second)" = 00 ] || fail "a window was set"

# With --apply, the named VM gets windows within the bounds, the other VM none.
lissom kvm apple --apply --vm=$first --epoch=100 --margin=0 --lower=1000 --upper=5000 --step=500 --duration=25s --json >/tmp/json 2>/tmp/err ||
    fail "$(cat /tmp/err)"
cat /tmp/err
tail -n 1 /tmp/json
has_rounds() {
    grep -q '"rounds":[1-9]' $1
}
has_rounds /tmp/json || fail "no round in $(cat /tmp/json)"
grep -o '"window":[0-9]*' /tmp/json | cut -d: -f2 | awk '$1 < 1000 || $1 > 5000 { exit 1 }' || fail "a window out of bounds"
[ "$(grep -o '"window":[0-9]*' /tmp/json | sort -u | wc -l)" -ge 2 ] || fail "one window only"
grep -q "\"pid\":$second" /tmp/json && fail "the other VM"
[ "$(value applied $second)" = 0 ] || fail "the other VM has a window"
[ "$(value window $first)" = 0 ] || fail "the window is left behind"
[ "$(value applied $first)" -gt 0 ] || fail "no entry with a window"

# Two instances at a time; one ends by SIGKILL, one by SIGTERM.
lissom kvm apple --apply --epoch=100 >/tmp/out 2>&1 &
apple=$!
wait_for eval '[ "$(value window $first)" = 3000 ]'
lissom kvm apple --apply --vm=$second --duration=1s >/tmp/out2 2>/tmp/err || fail "a second one: $(cat /tmp/err)"
grep -q "skipping process $second: another program has set its window" /tmp/err || fail "$(cat /tmp/err)"
kill -9 $apple
wait $apple 2>/dev/null
[ "$(value window $first)$(value window $second)" = 00 ] || fail "windows outlive SIGKILL"
lissom kvm apple --apply >/tmp/out 2>/tmp/err &
apple=$!
wait_for eval '[ "$(value window $first)" = 3000 ]'
kill $apple
wait $apple || fail "SIGTERM: $(cat /tmp/err)"
narrow /tmp/out
[ "$(value window $first)$(value window $second)" = 00 ] || fail "windows outlive SIGTERM"

# A VM that ends during the run.
lissom kvm apple --apply --vm=$first >/tmp/out 2>/tmp/err &
apple=$!
wait_for eval '[ "$(value window $first)" = 3000 ]'
kill -9 $first
wait $apple || fail "the VM's end: $(cat /tmp/err)"
grep -q "the VM of process $first has ended" /tmp/err || fail "no word of its end"
kill $second $guest 2>/dev/null
sleep 1
rmmod lissom_ple || fail "rmmod"
check_log
