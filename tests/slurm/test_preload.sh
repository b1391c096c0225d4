# The user's preloaded libraries remain, after the runtime. There is only one runtime, however often
# lissom is requested.
. "$(dirname "$0")/lib.sh"

for name in first second; do
    echo 'int lissom_test_only;' | cc -shared -fPIC -x c - -o "lib$name.so"
done
LD_PRELOAD="$work/libfirst.so $work/libsecond.so" srun --lissom sh -c 'echo "$LD_PRELOAD"; cat /proc/self/maps' >out
has out "$runtime:$work/libfirst.so:$work/libsecond.so"
has out "r-xp"
[ "$(head -n 1 out)" = "$runtime:$work/libfirst.so:$work/libsecond.so" ] || fail "$(head -n 1 out)"
tail -n +2 out >maps
has maps "$runtime"
has maps "$work/libfirst.so"
has maps "$work/libsecond.so"

# A `lissom run` inside, and one outside, which passes its environment on.
srun --lissom "$lissom" run -- printenv LD_PRELOAD >out
[ "$(cat out)" = "$runtime" ] || fail "inside: $(cat out)"
LD_PRELOAD=$work/libfirst.so "$lissom" run -- srun --lissom printenv LD_PRELOAD >out
[ "$(cat out)" = "$runtime:$work/libfirst.so" ] || fail "outside: $(cat out)"

# A path that no other process can open.
LD_PRELOAD=/proc/self/fd/77 srun --lissom printenv LD_PRELOAD >out 2>messages
[ "$(cat out)" = "$runtime" ] || fail "a descriptor: $(cat out)"

# off removes the runtime that the environment brings, and nothing else.
LD_PRELOAD=$work/libfirst.so "$lissom" run --max-threads=8 -- srun --lissom=off env >environment
has environment "LD_PRELOAD=$work/libfirst.so"
lacks environment liblissom
lacks environment GOMP_SPINCOUNT
lacks environment KMP_BLOCKTIME
lacks environment OMP_NUM_THREADS
OMP_NUM_THREADS=3 "$lissom" run --max-threads=8 -- srun --lissom=off env >environment
has environment OMP_NUM_THREADS=3
lacks environment LD_PRELOAD
