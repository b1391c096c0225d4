#!/bin/bash
# process_gdb.sh COMMAND...: starts the target, attaches gdb twice, detaches, and sees it end
# normally.
. "$(dirname "$0")/gdb_target.sh"
threads=$((${THREADS:-4} & ~1))
start "$@"
for round in 1 2; do
	gdb -nx -batch -p "$target" -ex 'info threads' -ex 'thread apply all bt 3' -ex detach > gdb.out 2>&1 < /dev/null
	n=$(grep -cE '^[* ] +[0-9]+ +(Thread|LWP)' gdb.out)
	# At least the target's own; a runtime may have helpers.
	[ "$n" -gt "$threads" ] || fail "gdb sees $n threads, expected more than $threads"
	sleep 0.05
done
finish process_gdb_target
echo ok process_gdb
