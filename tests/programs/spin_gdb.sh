#!/bin/bash
# spin_gdb.sh COMMAND...: attach gdb to a program whose threads spin, once with a breakpoint in the
# loop. Every thread's stack must lead to the spinning function and to its caller. After detaching,
# the program must end normally. At LEVEL user and auto, gdb shows no kernel thread for threads that
# do not run, so only the shown ones count.
. "$(dirname "$0")/gdb_target.sh"
threads=${THREADS:-4}
[ "$threads" -gt 32 ] && threads=32
start "$@"
for round in 1 2 3; do
	more=()
	[ $round = 2 ] && more=(-ex 'break spin_here' -ex continue -ex delete)
	timeout -s KILL 40 gdb -nx -batch -p "$target" "${more[@]}" -ex 'thread apply all bt 20' -ex detach > gdb.out 2>&1 < /dev/null || fail "gdb ends with $?"
	# All threads but the one that has the token, which may be anywhere in member(), and the one
	# that enters or leaves a loop.
	h=$(grep -cE '^#[0-9]+ .*spin_here' gdb.out)
	n=$(grep -cE '^#[0-9]+ .*spin_caller' gdb.out)
	m=$(grep -cE '^#[0-9]+ .* member \(' gdb.out)
	all=$threads
	case $LEVEL in user|auto) all=$m ;; esac
	[ "$m" = "$all" ] || fail "$m stacks lead to member, expected $all"
	# At the breakpoint one thread is in the loop; otherwise all may be between two threads at
	# this moment.
	[ $round != 2 ] || [ "$m" -ge 1 ] || fail "no stack leads to member"
	[ "$n" -ge $((all - 2)) ] || fail "$n stacks lead to spin_caller, expected $all"
	[ "$h" -ge $((all / 2 - 1)) ] || fail "$h stacks name spin_here, expected most of $all"
	grep -qE 'corrupt stack|previous frame (inner|identical)' gdb.out && fail "a stack that gdb does not understand"
	sleep 0.05
done
finish spin_gdb_target
echo ok spin_gdb
