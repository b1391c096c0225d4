#!/bin/bash
# process_gdb.sh COMMAND...: start the target, attach gdb twice and detach it; the target must end
# normally.
. "$(dirname "$0")/gdb_target.sh"
threads=$((${THREADS:-4} & ~1))
start "$@"
for round in 1 2; do
	gdb -nx -batch -p "$target" -ex 'info threads' -ex 'thread apply all bt 3' -ex detach > gdb.out 2>&1 < /dev/null
	n=$(grep -cE '^[* ] +[0-9]+ +(Thread|LWP)' gdb.out)
	# gdb must see at least the target's own threads; a runtime may have helpers.
	[ "$n" -gt "$threads" ] || fail "gdb sees $n threads, expected more than $threads"
	sleep 0.05
done
finish process_gdb_target
echo ok process_gdb
