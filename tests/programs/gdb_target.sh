# Common part of process_gdb.sh and spin_gdb.sh: the program that gdb attaches to. It prints "ready
# PID" and runs until a file named "stop" exists; its last line is "ok NAME". Sourced.

# start COMMAND...: start it and wait until it is ready. Sets `target` to its process.
start() {
	exec 3< <(exec "$@" 2> err)
	pid=$!
	local word
	read -r word target <&3
	[ "$word" = ready ] || { echo "FAIL the target is not ready"; cat err; kill -9 $pid; exit 1; }
}
# fail WHAT: show the last output of gdb from gdb.out, and kill the program.
fail() { echo "FAIL $1"; tail -40 gdb.out; touch stop; kill -9 "$target" $pid; exit 1; }
# finish NAME: stop the program; it has to end normally.
finish() {
	touch stop
	wait $pid
	local code=$? last
	last=$(tail -1 <&3)
	[ $code = 0 ] && [ "$last" = "ok $1" ] || { echo "FAIL exit code $code: $last"; cat err; exit 1; }
}
