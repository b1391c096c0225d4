# Jobs of a user other than slurmd's: that user has to be able to run lissom.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "root is needed to start another user's jobs"
command -v runuser >/dev/null || skip "runuser is not there"

as_nobody() {
    runuser -u nobody -- "$@"
}

as_nobody srun --chdir=/ --lissom sh -c 'id -un; cat /proc/self/maps' >out
[ "$(head -n 1 out)" = nobody ] || fail "as $(head -n 1 out)"
has out "$runtime"

mkdir -m 700 private
cp "$lissom" private/
plugin "bin=$work/private/lissom"
srun --lissom cat /proc/self/maps >out
has out liblissom
as_nobody srun --chdir=/ --lissom sh -c 'id -un; cat /proc/self/maps' >out 2>messages
[ "$(head -n 1 out)" = nobody ] || fail "$(cat out messages)"
lacks out liblissom
has messages "the program runs without it: $work/private/lissom: Permission denied"
