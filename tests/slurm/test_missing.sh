# If the runtime or plugstack.conf is defective, the program runs as without lissom, and one message
# states the reason.
. "$(dirname "$0")/lib.sh"

# natively PATH WHY: check that with this lissom the program runs natively, with one message
natively() {
    plugin "bin=$1"
    srun -n 2 --overcommit --lissom env >environment 2>messages || fail "it does not run: $(cat messages)"
    lacks environment LD_PRELOAD
    lacks environment GOMP_SPINCOUNT
    has messages "lissom: on $(hostname) the program runs without it: $1"
    has messages "$2"
    [ "$(grep -c lissom: messages)" = 1 ] || fail "more than one message: $(cat messages)"
}

# script NAME TEXT: write a program in place of lissom
script() {
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod 755 "$1"
}

natively "$work/nothing-here" "No such file or directory; install lissom there, or set bin="
natively "$work" ": Permission denied; install lissom there"
script fails 'echo wrong >&2; exit 1'
natively "$work/fails" " run --print-env, for --lissom=: wrong"
script dies 'kill -9 $$'
natively "$work/dies" "or killed; run it there"
script hangs 'exec sleep 1000'
natively "$work/hangs" "no answer within 5 s"
plugin "bin=$work/text"
script text 'echo text'
srun --lissom env >environment 2>messages
lacks environment LD_PRELOAD
has messages 'cannot apply `text`'

# Variables that lissom does not understand.
plugin
LISSOM_CPUS=0 srun --lissom env >environment 2>messages
lacks environment LD_PRELOAD
has messages "invalid value '0' for 'LISSOM_CPUS"
[ "$(grep -c lissom: messages)" = 1 ] || fail "more than one message: $(cat messages)"

# Jobs that do not ask for lissom see no message.
plugin "bin=$work/nothing-here"
srun true 2>messages
lacks messages lissom

# The message is in the output of a batch script.
printf '#!/bin/sh\n#SBATCH --output=out\necho done\n' >script
sbatch --wait --lissom script
has out "the program runs without it: $work/nothing-here: No such file"
has out "done"

# Malformed arguments in plugstack.conf are ignored; with malformed options jobs run natively.
plugin bin=relative/path nonsense default=cpus=0
srun --lissom cat /proc/self/maps >maps 2>messages
has maps "$runtime"
has messages "plugstack.conf: bin=relative/path: no such argument; there are bin=/PATH and default="
has messages "plugstack.conf: nonsense: no such argument"
srun cat /proc/self/maps >maps 2>messages
lacks maps liblissom
has messages "for --lissom=cpus=0: invalid value '0' for '--cpus <N>'"

# `optional`: a missing plugin stops no job.
echo "optional $work/lissom_spank.so" >"$scratch/plugstack.conf"
srun true
