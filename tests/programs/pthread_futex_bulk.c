// Threads wait on a few words. They are woken all at once, one by one and three by three, with and
// without bit sets, in any order. Signals and timeouts end waits, too. Waits report as many
// wake-ups as wakes do, and every wait ends.
#include "pthread_test.h"
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>

enum { WORDS = 3, PRIVATE = FUTEX_PRIVATE_FLAG, WAKERS = 3 };
static struct {
    _Alignas(64) atomic_uint is;
} word[WORDS];
static atomic_long woken, woke;
static atomic_int stop, finished;
static int waiters;
static uint64_t seed;
static pthread_t thread[1024];

static long futex(void *address, int op, unsigned value, const void *time, void *second,
                  unsigned bits) {
    long n = syscall(SYS_futex, address, op | PRIVATE, value, time, second, bits);
    return n < 0 ? -errno : n;
}

static void nothing(int sig) { (void)sig; }

static void *waits(void *arg) {
    uint64_t random = (uint64_t)(intptr_t)arg * 7919 + seed;
    struct timespec soon = {.tv_nsec = 200000};
    while (!stop) {
        unsigned w = t_rand(&random) % WORDS, is = word[w].is, kind = t_rand(&random) % 16;
        long n;
        if (stop) break;
        if (kind == 0)
            n = futex(&word[w].is, FUTEX_WAIT, is, &soon, NULL, 0);
        else if (kind == 1)
            n = futex(&word[w].is, FUTEX_WAIT_BITSET, is, NULL, NULL, 1 + t_rand(&random) % 3);
        else
            n = futex(&word[w].is, FUTEX_WAIT, is, NULL, NULL, 0);
        if (n == 0)
            atomic_fetch_add(&woken, 1);
        else
            CHECK(n == -EAGAIN || n == -EINTR || n == -ETIMEDOUT, "a wait says %ld", n);
    }
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void wake(unsigned w, unsigned n, unsigned bits) {
    long r = bits ? futex(&word[w].is, FUTEX_WAKE_BITSET, n, NULL, NULL, bits)
                  : futex(&word[w].is, FUTEX_WAKE, n, NULL, NULL, 0);
    CHECK(r >= 0, "a wake says %ld", r);
    CHECK(r <= (long)n, "%ld of %u were woken", r, n);
    atomic_fetch_add(&woke, r);
}

static void *wakes(void *arg) {
    uint64_t random = (uint64_t)(intptr_t)arg * 104729 + seed;
    int rounds = t_share(60000, waiters);
    for (int i = 0; i < rounds; i++) {
        unsigned w = t_rand(&random) % WORDS, kind = t_rand(&random) % 64;
        atomic_fetch_add(&word[w].is, 1);
        if (kind == 0)
            wake(w, 1, 0);
        else if (kind == 1)
            wake(w, 3, 0);
        else if (kind == 2)
            wake(w, INT_MAX, 1 + t_rand(&random) % 3);
        else if (kind == 3)
            pthread_kill(thread[t_rand(&random) % (unsigned)waiters], SIGUSR1);
        else if (kind == 4 && i > rounds / 2 && (intptr_t)arg == 0)
            CHECK(futex(&word[w].is, FUTEX_REQUEUE, 0, (void *)INT_MAX, &word[(w + 1) % WORDS].is,
                        0) >= 0,
                  "requeue");
        else
            wake(w, INT_MAX, 0);
        if (kind % 4 == 0) sched_yield();
    }
    return NULL;
}

int main(void) {
    pthread_t waker[WAKERS];
    t_watchdog();
    waiters = t_threads();
    seed = t_seed();
    struct sigaction a = {.sa_handler = nothing};
    SYS(sigaction(SIGUSR1, &a, NULL));
    for (int i = 0; i < waiters; i++) thread[i] = t_spawn(waits, (void *)(intptr_t)i);
    for (int i = 0; i < WAKERS; i++) waker[i] = t_spawn(wakes, (void *)(intptr_t)i);
    for (int i = 0; i < WAKERS; i++) t_join(waker[i]);
    stop = 1;
    while (finished < waiters)
        for (unsigned w = 0; w < WORDS; w++) {
            atomic_fetch_add(&word[w].is, 1);
            wake(w, INT_MAX, 0);
            sched_yield();
        }
    for (int i = 0; i < waiters; i++) t_join(thread[i]);
    EQ(woken, woke);
    CHECK(woke > 0, "nobody was woken");
    return t_ok("pthread_futex_bulk");
}
