# Programs that check themselves, under `lissom run` with parking.
. "$(dirname "$0")/lib.sh"
build_scheduler
names="pthread_barrier pthread_cond_queue pthread_cond_signal pthread_cancel_cond pthread_join signal_kill signal_process process_fork stress_pairs"
arguments=()
for name in $names; do
    compile "$name" "$root/tests/programs/$name.c" -I "$root/tests/programs"
    arguments+=(--program "$programs/$name")
done
inside --timeout 300 "${arguments[@]}" -- parking.sh $names
