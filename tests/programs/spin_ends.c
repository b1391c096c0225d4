// Threads that compute, and threads that wait in vain in a counted loop with a pause. Half of these
// provably wait for a word or the end of the count; the others try to take a lock. All counts must
// end although others could run all the time.
#include "spin_test.h"

enum { COUNT = 100000, WAITERS = 6 };

static volatile uint32_t never, waiting;
static uint32_t lock = 1, failures;
static volatile uint64_t sink;

__attribute__((noinline)) static int wait_counted(void) {
    for (int i = 0; i < COUNT; i++) {
        if (never) return 1;
        __builtin_ia32_pause();
    }
    return 0;
}

__attribute__((noinline)) static int try_counted(void) {
    for (int i = 0; i < COUNT; i++) {
        if (!__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) return 1;
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
        __builtin_ia32_pause();
    }
    return 0;
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    if (me < WAITERS) {
        for (int i = 0; i < 3; i++) EQ(me % 2 ? try_counted() : wait_counted(), 0);
        __atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
        return arg;
    }
    uint64_t x = (uint64_t)me;
    while (waiting) {
        for (int i = 0; i < 1000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
        sink = x;
    }
    return arg;
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    waiting = WAITERS;
    t_run(spin_threads < WAITERS + 1 ? WAITERS + 1 : spin_threads, work);
    EQ(failures, WAITERS / 2 * 3 * COUNT);
    return t_ok("spin_ends");
}
