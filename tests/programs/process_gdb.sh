#!/bin/bash
# process_gdb.sh COMMAND...: starts the target, attaches gdb twice, detaches, and sees it end normally.
threads=$((${THREADS:-4} & ~1))
"$@" > out 2> err &
pid=$!
for _ in $(seq 400); do
	[ -s out ] && break
	sleep 0.05
done
read -r word target < out
[ "$word" = ready ] || { echo "FAIL the target is not ready"; cat out err; kill -9 $pid; exit 1; }
for round in 1 2; do
	gdb -nx -batch -p "$target" -ex 'info threads' -ex 'thread apply all bt 3' -ex detach > gdb.out 2>&1 < /dev/null
	n=$(grep -cE '^[* ] +[0-9]+ +(Thread|LWP)' gdb.out)
	# At least the target's own; a runtime may have helpers.
	[ "$n" -gt "$threads" ] || { echo "FAIL gdb sees $n threads, expected more than $threads"; tail -20 gdb.out; kill -9 $pid; exit 1; }
	sleep 0.05
done
touch stop
wait $pid
code=$?
[ $code = 0 ] && [ "$(tail -1 out)" = "ok process_gdb_target" ] || { echo "FAIL exit code $code"; cat out err; exit 1; }
echo ok process_gdb
