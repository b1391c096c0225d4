# Invalid options are refused when a job is submitted, with a message that lists valid ones.
. "$(dirname "$0")/lib.sh"

printf '#!/bin/sh\ntouch "%s/ran"\n' "$work" >script
# refused TEXT PART...: check that srun, sbatch and salloc refuse TEXT with a message that contains
# all parts
refused() {
    local command part
    for command in "srun --lissom=$1 touch $work/ran" "sbatch --lissom=$1 script" "salloc --lissom=$1 touch $work/ran"; do
        if $command >out 2>&1; then
            fail "not refused: $command"
        fi
        has out "error: lissom: --lissom=$1: "
        for part in "${@:2}"; do
            has out "$part"
        done
    done
}

refused cpus=0 '`cpus=0`' cpus=1..1024
refused cpus=1025 cpus=1..1024
refused cpus=99999999999999999999 cpus=1..1024
refused cpus=4x cpus=1..1024
refused cpus cpus=1..1024
refused switch=fast 'switch=auto|user|kernel|off'
refused switch=auto,spin=maybe '`spin=maybe`' 'spin=auto|observe|off'
refused spin-threshold=-1 'spin-threshold=auto|0..1000000'
refused idle= 'idle=haltpoll|sleep|poll'
refused malleable=2 'malleable=0|1'
refused verbose=yes 'verbose=0|1'
refused treads=8 'no option `treads=8`' 'cpus=1..1024' 'switch=auto|user|kernel|off' verbose
refused cpus=4, 'no option ``'
refused yes 'no option `yes`' 'on, off'
queue_is_empty || fail "something was submitted: $(squeue)"
[ ! -e ran ] || fail "something was run"
