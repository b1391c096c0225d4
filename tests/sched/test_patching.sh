# `lissom run` on kernels with and without forced writes to /proc/self/mem, and the report of
# `lissom doctor`.
. "$(dirname "$0")/lib.sh"
build_scheduler
arguments=()
for name in patch_pages pthread_cond_queue; do
    compile "$name" "$root/tests/programs/$name.c" -I "$root/tests/programs"
    arguments+=(--program "$programs/$name")
done
cpu=qemu64
for force in always never; do
    inside "${arguments[@]}" --cpu $cpu --append "proc_mem.force_override=$force" -- patching.sh $force patch_pages pthread_cond_queue
    cpu=max
done
