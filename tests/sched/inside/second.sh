# Only one scheduler runs at a time: a second one is refused in one line, and the first one keeps
# running. A stop without a scheduler is refused as well.
. ./lib.sh
start_sched
start_hogs 2
refused
cat /tmp/refusal
grep -q lissom /tmp/refusal || fail "the refusal does not name who runs"
runs || fail "the first one has ended"
advances $hogs
stop_sched
code=0
lissom sched stop >/tmp/refusal 2>&1 || code=$?
[ $code = 1 ] || fail "lissom sched stop, with nothing to stop: $code"
end_hogs
end
