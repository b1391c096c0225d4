# Threads before glibc 2.34, where they are a library of their own: programs of tests/programs and
# of old/, compiled and run on Debian 11.
. "$(dirname "$0")/lib.sh"
debian bullseye gcc libc6-dev
tar -xzf "$dist/$archive.tar.gz" -C "$machine/usr" --strip-components=1
mkdir "$machine/programs" "$machine/built"
cp "$root"/tests/programs/* "$here"/old/* "$machine/programs/"

names="pthread_barrier pthread_join pthread_keys pthread_once pthread_sem pthread_cond_queue pthread_cancel_async pthread_cancel_block pthread_cancel_cond
pthread_cancel_deferred process_fork process_setuid signal_kill signal_mask_race"
for name in $names; do
    inside gcc -std=gnu11 -O2 -w -pthread -o "/built/$name" "/programs/$name.c"
    for switch in kernel auto; do
        inside env THREADS=32 timeout 100 lissom run --switch=$switch -- "/built/$name" >"$work/said" 2>&1 || fail "$name, $switch: $? $(cat "$work/said")"
        echo "$switch: $(tail -n 1 "$work/said")"
        grep -qx "ok $name" "$work/said" || fail "not ok"
    done
done

inside gcc -O2 -Wall -Wextra -Werror -fPIC -shared -DEARLY -pthread -o /built/libearly.so /programs/threads_lib.c
inside gcc -O2 -Wall -Wextra -Werror -fPIC -shared -pthread -o /built/liblate.so /programs/threads_lib.c
inside gcc -O2 -Wall -Wextra -Werror -pthread -o /built/early /programs/early.c /built/libearly.so
inside gcc -O2 -Wall -Wextra -Werror -o /built/late /programs/late.c -ldl

show 'lissom run -v -- /built/early' | tee "$work/said"
grep -qx 'sum: 500500' "$work/said" || fail "not the sum"
grep -q 'native, .*: threads were created before the runtime could start' "$work/said" || fail "it does not say why it runs natively"
for switch in kernel auto; do
    show "lissom run -v --switch=$switch -- /built/late /built/liblate.so" | tee "$work/said"
    grep -qx 'sum: 500500' "$work/said" || fail "not the sum"
    grep -q 'lissom: active' "$work/said" || fail "the runtime is not at work"
done
