# If the runtime or plugstack.conf is defective, the program runs as without lissom, and one message
# states the reason.
. "$(dirname "$0")/lib.sh"

# natively PATH WHY: check that with this library the program runs natively, with one message
natively() {
    plugin "lib=$1"
    srun -n 2 --overcommit --lissom env >environment 2>messages || fail "it does not run: $(cat messages)"
    lacks environment LD_PRELOAD
    lacks environment GOMP_SPINCOUNT
    has messages "lissom: on $(hostname) the program runs without it: $1: $2"
    has messages "lib= in plugstack.conf"
    [ "$(grep -c lissom: messages)" = 1 ] || fail "more than one message: $(cat messages)"
}

natively "$work/nothing-here.so" "No such file or directory"
natively "$work" "Is a directory"
echo "no library" >text
natively "$work/text" "not a library for x86-64"
head -c 40 "$runtime" >./cut
natively "$work/cut" "not a library for x86-64"
mkdir 'a$b'
cp "$runtime" 'a$b/'
natively "$work/a\$b/${runtime##*/}" "the loader cannot preload from"

# Jobs that do not ask for lissom see no message.
plugin "lib=$work/nothing-here.so"
srun true 2>messages
lacks messages lissom

# The message is in the output of a batch script.
printf '#!/bin/sh\n#SBATCH --output=out\necho done\n' >script
sbatch --wait --lissom script
has out "the program runs without it: $work/nothing-here.so: No such file"
has out "done"

# Malformed arguments in plugstack.conf are ignored.
plugin lib=relative/path nonsense default=cpus=0
srun --lissom cat /proc/self/maps >maps 2>messages
has maps "$runtime"
has messages "plugstack.conf: lib=relative/path: a path that begins with / is needed"
has messages "plugstack.conf: nonsense: no such argument; there are lib=PATH and default=on|off|OPTIONS"
has messages "plugstack.conf: default=cpus=0: "
srun cat /proc/self/maps >maps 2>messages
lacks maps liblissom

# `optional`: a missing plugin stops no job.
echo "optional $work/lissom_spank.so" >"$scratch/plugstack.conf"
srun true
