// build: -shared -fPIC
// The library of process_dlopen. Its constructor creates threads; it has futex instructions of its
// own.
#include "pthread_futex.h"

static uint32_t word, arrived;
static pthread_t threads[3];
static int stop, rounds_done;
static __thread int lib_tls = 5;

static void *lib_thread(void *arg) {
    int how = (int)(intptr_t)arg;
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    uint32_t seen = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        futex(how, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        seen = __atomic_load_n(&word, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&rounds_done, 1, __ATOMIC_SEQ_CST);
        lib_tls++;
    }
    return NULL;
}
// The library must be patched before this runs: these waits are its first code.
static void __attribute__((constructor)) begin(void) {
    for (int i = 0; i < 3; i++) threads[i] = t_spawn(lib_thread, (void *)(intptr_t)i);
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 3) sched_yield();
}
static void __attribute__((destructor)) end(void) {
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
    futex_inline(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    for (int i = 0; i < 3; i++) t_join(threads[i]);
}
// Wait with the library's own instruction for a word that the program wakes.
long lib_wait(uint32_t *w, uint32_t value, int how) {
    long r;
    while ((r = futex(how, w, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0)) == -EINTR) {}
    return r;
}
long lib_wake(uint32_t *w, int n, int how) {
    return futex(how, w, FUTEX_WAKE_PRIVATE, (uint32_t)n, NULL, NULL, 0);
}
int lib_kick(void) {
    __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
    futex_inline(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return __atomic_load_n(&rounds_done, __ATOMIC_SEQ_CST);
}
