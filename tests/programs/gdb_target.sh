# What process_gdb.sh and spin_gdb.sh share: the program that gdb is attached to. It says "ready
# PID" and goes on until there is a file named "stop"; its last line is "ok NAME". Sourced.

# start COMMAND...: until it is ready. Sets `target`, its process.
start() {
	"$@" > out 2> err &
	pid=$!
	for _ in $(seq 400); do
		[ -s out ] && break
		sleep 0.05
	done
	local word
	read -r word target < out
	[ "$word" = ready ] || { echo "FAIL the target is not ready"; cat out err; kill -9 $pid; exit 1; }
}
# fail WHAT: what gdb has shown last is in gdb.out.
fail() { echo "FAIL $1"; tail -40 gdb.out; touch stop; kill -9 "$target" $pid; exit 1; }
# finish NAME: it ends normally.
finish() {
	touch stop
	wait $pid
	local code=$?
	[ $code = 0 ] && [ "$(tail -1 out)" = "ok $1" ] || { echo "FAIL exit code $code"; cat out err; exit 1; }
}
