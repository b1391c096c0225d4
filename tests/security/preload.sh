#!/usr/bin/env bash
# Run two programs with the runtime loaded by /etc/ld.so.preload. Prints for each its threads and
# whether the runtime has printed anything: `preload.sh LISSOM RUNTIME PROGRAM SUID`, as root, in a
# mount namespace of its own. PROGRAM must become active; SUID never does. Needs an empty folder
# `work`.
set -euo pipefail
lissom=$1 runtime=$2

# look PROGRAM COMMAND...: run PROGRAM and describe it after COMMAND, which gets its process number
# as an argument, has returned
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
look "$3" "$lissom" stat --wait-for active --interval 100ms
look "$4" true
