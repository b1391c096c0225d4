# Programs with more threads than CPUs have the same results, and options reach the runtime.
. "$(dirname "$0")/lib.sh"

build lang_omp -fopenmp -lm
build pthread_barrier
slots=$(LISSOM_START=now "$lissom" run --verbose -- true 2>&1 |
    sed -n 's/^lissom: active, \([0-9]*\) slots.*/\1/p')
export THREADS=$((8 * $(nproc)))
for options in switch=auto switch=user switch=kernel; do
    for program in lang_omp pthread_barrier; do
        srun --partition=whole --lissom="$options,verbose" "./$program" >out 2>messages || fail "$options: $(cat out messages)"
        [ "$(cat out)" = "ok $program" ] || fail "$options: $(cat out)"
        has messages "lissom: active, $slots slots"
    done
done
srun --partition=whole --lissom=cpus=1,verbose ./pthread_barrier 2>messages
has messages "lissom: active, 1 slots"
srun --lissom=switch=off,verbose ./pthread_barrier 2>messages
lacks messages "lissom:"

# A task has as many slots as CPUs from Slurm.
srun -n 1 -c 1 --lissom=verbose ./pthread_barrier 2>messages
has messages "lissom: active, 1 slots"
if [ "$slots" -ge 2 ]; then
    srun -n 1 -c 2 --lissom=verbose ./pthread_barrier 2>messages
    has messages "lissom: active, 2 slots"
fi

# The exit code is the program's, and unsuitable programs run natively.
code=0
srun --lissom sh -c 'exit 7' 2>messages || code=$?
[ "$code" = 7 ] || fail "exit code $code"
build hello -static
[ "$(srun --lissom ./hello)" = hello ] || fail "a static program"
