// build: -ldl
// dlopen of a library with threads and futex instructions of its own, while others run; many times,
// with dlclose. Needs process_dlopen_lib, built beforehand. Its path is the first argument
// (default: beside this program).
#include "dlopen_test.h"
#include "pthread_futex.h"
#include <sys/prctl.h>

static long (*lib_wait)(uint32_t *, uint32_t, int);
static long (*lib_wake)(uint32_t *, int, int);
static int (*lib_kick)(void);
static uint32_t turns[512][16];
static int threads, rounds;
static volatile int stop, decided;
static pthread_barrier_t barrier;

static void *busy(void *arg) {
    do {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) decided = stop;
        pthread_barrier_wait(&barrier);
    } while (!decided);
    return arg;
}
// One side waits and wakes in the library, the other in the program and libc.
static void *player(void *arg) {
    int me = (int)(intptr_t)arg, side = me & 1;
    uint32_t *turn = turns[me / 2], seen;
    for (int r = 0; r < rounds; r++) {
        while ((int)((seen = __atomic_load_n(turn, __ATOMIC_ACQUIRE)) & 1) != side) {
            long e = side ? lib_wait(turn, seen, r)
                          : futex(r, turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
            CHECK(e == 0 || e == -EAGAIN || e == -EINTR, "wait: %ld", e);
        }
        __atomic_add_fetch(turn, 1, __ATOMIC_ACQ_REL);
        if (side)
            lib_wake(turn, 1, r + 1);
        else
            futex(r + 1, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    t_watchdog();
    const char *path = t_library(argc, argv);
    threads = t_threads() & ~1;
    rounds = t_share(1000, threads);
    OK(pthread_barrier_init(&barrier, NULL, 4));
    pthread_t t[4];
    for (int i = 0; i < 4; i++) t[i] = t_spawn(busy, NULL);
    // no memory becomes executable from now on
    if (getenv("FORBID")) SYS(prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0));
    for (int i = 0; i < 6; i++) {
        PHASE("dlopen");
        void *lib = t_dlopen(path, i & 1 ? RTLD_NOW : RTLD_LAZY);
        lib_wait = (long (*)(uint32_t *, uint32_t, int))t_dlsym(lib, "lib_wait");
        lib_wake = (long (*)(uint32_t *, int, int))t_dlsym(lib, "lib_wake");
        lib_kick = (int (*)(void))t_dlsym(lib, "lib_kick");
        PHASE("players");
        memset(turns, 0, sizeof turns);
        t_run(threads, player);
        PHASE("the library's threads");
        while (lib_kick() < 20) t_sleep_us(200);
        PHASE("dlclose");
        t_dlclose(lib);
        lib_wait = NULL;
    }
    stop = 1;
    for (int i = 0; i < 4; i++) t_join(t[i]);
    CHECK(!dlopen("/nowhere/nothing.so", RTLD_NOW), "dlopen of nothing");
    return t_ok("process_dlopen");
}
