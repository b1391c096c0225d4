# Windows that are requested, returned, and abandoned when their owner dies.
. ./lib.sh
load
# is_sane: a window that is taken back while the guest runs must leave only KVM's own values behind;
# otherwise the module counts a refused vCPU
is_sane() {
    [ "$(value refused)" = 0 ] || fail "a vCPU has a window that KVM would not give it"
}
refuses() {
    expected=$1
    shift
    said=$( (echo "$@" >&3) 2>&1) && fail "taken: $*"
    case $said in
    *"$expected"*) ;;
    *) fail "$* said: $said" ;;
    esac
}
# has_window PID N: whether at least N entries of this VM had the requested window
has_window() {
    [ "$(value applied "$1")" -ge "$2" ]
}
./guest --vms 2 --vcpus 2 --seconds 0 >/tmp/guest 2>&1 &
guest=$!
wait_for has_vms 2
first=$(sed -n '2s/^vm=\([0-9]*\) .*/\1/p' $device)
second=$(sed -n '3s/^vm=\([0-9]*\) .*/\1/p' $device)

exec 3<>$device
for text in "vm" "vm 1" "vm $first window" "vm $first window x" "vm $first window 5 6" "vm $first defaults" "window 5" \
    "vm $first window 5555555555555555555555555555555555555555555555555555555"; do
    refuses "nvalid argument" "$text"
done
refuses "out of range" "vm $first window 0"
refuses "out of range" "vm $first window 65536"
refuses "No such process" "vm 1 window 5"
[ "$(value applied $first)" = 0 ] || fail "a window in force that nobody has asked for"

# The window must be in the VMCB of each entry, for this VM only.
echo "vm $first window 777" >&3 || fail "window 777"
[ "$(value window $first)" = 777 ] || fail "not taken"
wait_for has_window $first 200
[ "$(value applied $second)" = 0 ] || fail "the other VM's"
kill -STOP $first
sleep 0.5
before=$(value entries $first) had=$(value applied $first)
kill -CONT $first
sleep 1
kill -STOP $first
sleep 0.5
echo "entries with the window: $(($(value applied $first) - had)) of $(($(value entries $first) - before))"
[ $(($(value applied $first) - had)) = $(($(value entries $first) - before)) ] || fail "entries without the window"
kill -CONT $first
own=$(value own $first)
[ "$own" -ge 3000 ] || fail "KVM's own window is $own"

# No other process may take or return the window; another process's exit, and reading, do not return
# it.
(exec 4<>$device && echo "vm $first window 9" >&4) 2>/dev/null && fail "taken from its holder"
(exec 4<>$device && echo "vm $first default" >&4) 2>/dev/null && fail "given up by another"
cat $device >/dev/null
[ "$(value window $first)" = 777 ] || fail "given up"
is_sane

# Windows are returned by command, by close, and by the death of their owner.
echo "vm $first default" >&3
[ "$(value window $first)" = 0 ] || fail "default"
echo "vm $first window 65535" >&3
exec 3>&-
[ "$(value window $first)" = 0 ] || fail "close"
sh -c "exec 3<>$device; echo 'vm $second window 4000' >&3; while :; do sleep 1; done" &
writer=$!
wait_for eval '[ "$(value window $second)" = 4000 ]'
wait_for has_window $second 50
kill -9 $writer
wait $writer 2>/dev/null
# The shell's child also holds the file, until it has slept.
wait_for eval '[ "$(value window $second)" = 0 ]'
had=$(value applied $second)
sleep 0.5
[ "$(value applied $second)" = "$had" ] || fail "still in force"
is_sane

# The module stays loaded while a process has it open, and can be unloaded while VMs run.
exec 3<>$device
echo "vm $first window 20" >&3
wait_for has_window $first $(($(value applied $first) + 50))
rmmod lissom_ple 2>/dev/null && fail "unloaded under an open file"
exec 3>&-
rmmod lissom_ple || fail "rmmod"
load
wait_for has_vms 2
is_sane

# Only the killed VM is forgotten together with its window.
exec 3<>$device
echo "vm $first window 20" >&3
echo "vm $second window 30" >&3
wait_for has_window $first 50
kill -9 $first
wait_for has_vms 1
[ "$(value window $second)" = 30 ] || fail "the other one"
refuses "No such process" "vm $first window 20"
exec 3>&-

# Repeat kill, close and unload at arbitrary times.
i=0
while [ $i -lt 15 ]; do
    ./guest --vms 1 --vcpus 3 --seconds 0 >/dev/null 2>&1 &
    pid=$!
    wait_for eval '[ "$(vm_count)" -ge 2 ]'
    exec 3<>$device
    # shellcheck disable=SC2013 # all are read before any is written
    for vm in $(sed -n 's/^vm=\([0-9]*\) .*/\1/p' $device); do echo "vm $vm window $((i * 100 + 1))" >&3; done
    child=$(sed -n '$s/^vm=\([0-9]*\) .*/\1/p' $device)
    sleep 0.1
    kill -9 $child $pid
    exec 3>&-
    is_sane
    rmmod lissom_ple || fail "rmmod in round $i"
    load
    i=$((i + 1))
done
wait_for has_vms 1
is_sane
kill $guest $second 2>/dev/null
sleep 1
rmmod lissom_ple || fail "the last rmmod"
check_log
