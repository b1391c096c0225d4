# What process_gdb.sh and spin_gdb.sh share: the program that gdb is attached to. It says "ready
# PID" and goes on until there is a file named "stop"; its last line is "ok NAME". Sourced.

# start COMMAND...: until it is ready. Sets `target`, its process.
start() {
	exec 3< <(exec "$@" 2> err)
	pid=$!
	local word
	read -r word target <&3
	[ "$word" = ready ] || { echo "FAIL the target is not ready"; cat err; kill -9 $pid; exit 1; }
}
# fail WHAT: what gdb has shown last is in gdb.out.
fail() { echo "FAIL $1"; tail -40 gdb.out; touch stop; kill -9 "$target" $pid; exit 1; }
# finish NAME: it ends normally.
finish() {
	touch stop
	wait $pid
	local code=$? last
	last=$(tail -1 <&3)
	[ $code = 0 ] && [ "$last" = "ok $1" ] || { echo "FAIL exit code $code: $last"; cat err; exit 1; }
}
