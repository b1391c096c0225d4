// Threads that compute until all of them do, each at least for a moment. In some rounds all signals
// are blocked, so that no thread can be preempted; in some, none are; in some, each thread changes
// its mask. A barrier separates the rounds.
#include "pthread_test.h"
#include <signal.h>
#include <stdbool.h>

enum { ROUNDS = 12 };
static pthread_barrier_t barrier;
static long threads;
static int here[ROUNDS];

static void block(int how) {
    sigset_t all;
    sigfillset(&all);
    EQ(pthread_sigmask(how, &all, NULL), 0);
}

// Work that is no wait: its state never repeats.
static uint64_t compute(uint64_t x, int n) {
    for (int i = 0; i < n; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static void *worker(void *arg) {
    long self = (long)arg;
    uint64_t x = (uint64_t)self;
    for (int round = 0; round < ROUNDS; round++) {
        bool deaf = round % 4 == 0 || (round % 4 == 1 && self % 2);
        bool changes = round % 4 == 2;
        if (deaf || changes) block(SIG_BLOCK);
        x = compute(x, 100000);
        __atomic_add_fetch(&here[round], 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&here[round], __ATOMIC_SEQ_CST) < threads) {
            x = compute(x, 1000);
            if (changes && x >> 58 == 0) block(SIG_UNBLOCK);
            if (changes && x >> 58 == 1) block(SIG_BLOCK);
        }
        if (deaf || changes) block(SIG_UNBLOCK);
        pthread_barrier_wait(&barrier);
    }
    return (void *)(uintptr_t)(x | 1);
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t t[threads];
    for (long i = 0; i < threads; i++) t[i] = t_spawn(worker, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(t[i], NULL);
    return t_ok("signal_deaf");
}
