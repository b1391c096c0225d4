// Threads that meet at a barrier: without work in between, with some work, with a wait for each
// other without system calls, then without work again. Whether they run on one slot or on several,
// every round ends, and a round's first thread can wait for the last one.
#include "pthread_test.h"
#include <stdatomic.h>

enum { QUICK = 100000, SLOW = 20, LATE = 5 };
static pthread_barrier_t barrier;
static int threads;
static atomic_long arrived, rounds;

static void meet(void) {
    int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD, "pthread_barrier_wait: %d", r);
    if (r) atomic_fetch_add(&rounds, 1);
}

static void quick(void) {
    for (int n = t_share(QUICK, threads); n > 0; n--) meet();
}

static void *work(void *arg) {
    quick();
    for (int n = 0; n < SLOW; n++) {
        for (volatile int i = 0; i < 20000; i++) {}
        meet();
    }
    quick();
    for (long n = 1; n <= LATE; n++) {
        atomic_fetch_add(&arrived, 1);
        // Compute while waiting: the stores keep the loop from being detected as a wait.
        for (volatile long turns = 0; atomic_load(&arrived) < n * threads;) turns = turns * 3 + 1;
        meet();
    }
    quick();
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    t_run(threads, work);
    EQ(rounds, 3 * t_share(QUICK, threads) + SLOW + LATE);
    return t_ok("pthread_barrier_phases");
}
