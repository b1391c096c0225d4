# The environment of a task is the same as with `lissom run`, whatever the user has set.
. "$(dirname "$0")/lib.sh"
unset OMP_NUM_THREADS OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME GLIBC_TUNABLES LD_PRELOAD

# same TEXT OPTIONS [NAME=VALUE]...: compare `srun --lissom=TEXT` with `lissom run OPTIONS`, with
# these variables
same() {
    local ours='^(LISSOM|LD_PRELOAD|GLIBC_TUNABLES|GOMP_|KMP_|OMP_)'
    env "${@:3}" srun --lissom="$1" env >all
    grep -E "$ours" all | sort >task || true
    # shellcheck disable=SC2086
    env "${@:3}" "$lissom" run $2 -- env >all 2>messages
    grep -E "$ours" all | sort >run || true
    diff run task || fail "as above: lissom run $2 (<) and --lissom=$1 (>), with ${*:3}"
}

same "" ""
has task "LD_PRELOAD=$runtime"
has task LISSOM_SPIN=auto
same switch=user,cpus=4 "--switch=user --cpus=4"
has task LISSOM_SWITCH=user
has task LISSOM_CPUS=4
same switch=kernel,spin=observe,spin-threshold=2000,idle=sleep,share=off \
    "--switch=kernel --spin=observe --spin-threshold=2000 --idle=sleep --share=off"
same spin=off,spin-threshold=auto,idle=poll,verbose "--spin=off --spin-threshold=auto --idle=poll --verbose"
has task LISSOM_VERBOSE=1
same malleable=1,omp-team=slots,omp-schedule=guided \
    "--malleable=1 --omp-team=slots --omp-schedule=guided"
has task OMP_SCHEDULE=guided
same max-threads=8 "--max-threads=8"
has task OMP_NUM_THREADS=8
same max-threads=8 "--max-threads=8" "OMP_NUM_THREADS= 3 ,2"
has task LISSOM_ACTIVE_THREADS=3
same max-threads=8 "--max-threads=8" OMP_NUM_THREADS=many

# Options take precedence over the environment, and that over lissom's defaults.
same "" "" LISSOM_SWITCH=kernel LISSOM_IDLE=poll LISSOM_SHARE=off LISSOM_MAX_THREADS=4 LISSOM_CPUS=3
same idle=sleep,cpus=2 "--idle=sleep --cpus=2" LISSOM_IDLE=poll LISSOM_CPUS=3
has task LISSOM_CPUS=2

same "" "" OMP_WAIT_POLICY=passive
lacks task GOMP_SPINCOUNT
same "" "" OMP_WAIT_POLICY=ACTIVE
has task GOMP_SPINCOUNT=0
same "" "" GOMP_SPINCOUNT=7
has task GOMP_SPINCOUNT=7
same "" "" GLIBC_TUNABLES=glibc.pthread.rseq=1
has task GLIBC_TUNABLES=glibc.pthread.rseq=1

# The folder in which the runtime keeps what it found in libraries.
if [ "$(id -u)" != 0 ]; then
    env -u XDG_RUNTIME_DIR XDG_CACHE_HOME="$work" srun --lissom true
    [ -d "$work/lissom" ] || fail "no folder for the cache of sites"
fi
