#!/usr/bin/env bash
# Runs two programs into which the runtime is loaded by /etc/ld.so.preload, and says of each which
# threads it has and whether the runtime has spoken: `preload.sh LISSOM RUNTIME PROGRAM SUID`, as
# root, in a mount namespace of its own. PROGRAM is awaited to be active, SUID never is. Needs an
# empty folder `work`.
set -euo pipefail
lissom=$1 runtime=$2

# look PROGRAM COMMAND... - the command, which is given the process number, returns once there is
# something to see.
look() {
    local ready loaded names voice tasks
    exec 3< <(LISSOM_VERBOSE=1 exec "$1" barrier 4 2>said)
    local pid=$!
    read -r ready <&3 # all of its threads have begun, the runtime's, too
    "${@:2}" "$pid" >/dev/null
    grep -q "$runtime" "/proc/$pid/maps" && loaded=loaded || loaded='not loaded'
    tasks=("/proc/$pid/task"/*)
    names=$(cat "/proc/$pid/task"/*/comm | sort -u | tr '\n' ' ')
    grep -q ^lissom: said && voice=speaks || voice='is silent'
    echo "$ready, $loaded, ${#tasks[@]} threads: $names$voice"
    kill "$pid"
    wait "$pid" || true
}

mount -t tmpfs none work
mkdir work/up work/work
mount -t overlay none -o lowerdir=/etc,upperdir=work/up,workdir=work/work /etc
echo "$runtime" >/etc/ld.so.preload
look "$3" "$lissom" stat --wait-for active --interval 0.1
look "$4" true
