// Barriers: no thread passes early, each round has exactly one serial thread, and the barrier may
// be destroyed right after use.
#include "pthread_test.h"

static pthread_barrier_t barrier;
static int threads, rounds, arrived, serial;

static void *work(void *arg) {
    for (int i = 1; i <= rounds; i++) {
        __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
        int r = pthread_barrier_wait(&barrier);
        if (r == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
        else
            OK(r);
        int seen = __atomic_load_n(&arrived, __ATOMIC_SEQ_CST);
        CHECK(seen >= i * threads, "round %d: passed with %d arrivals", i, seen);
    }
    return arg;
}

// The serial thread destroys and frees the barrier at once, as POSIX allows.
static void *once_each(void *arg) {
    pthread_barrier_t *b = arg;
    if (pthread_barrier_wait(b) == PTHREAD_BARRIER_SERIAL_THREAD) {
        OK(pthread_barrier_destroy(b));
        memset(b, 0xff, sizeof *b);
        free(b);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    rounds = t_share(8000, threads);
    PHASE("rounds");
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    t_run(threads, work);
    EQ(arrived, threads * rounds);
    EQ(serial, rounds);
    OK(pthread_barrier_destroy(&barrier));
    EQ(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
    PHASE("destroy at once");
    for (int i = 0; i < 20; i++) {
        pthread_barrier_t *b = malloc(sizeof *b);
        pthread_t t[8];
        OK(pthread_barrier_init(b, NULL, 8));
        for (int k = 0; k < 8; k++) t[k] = t_spawn(once_each, b);
        for (int k = 0; k < 8; k++) t_join(t[k]);
    }
    return t_ok("pthread_barrier");
}
