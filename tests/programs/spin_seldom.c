// Workers wait for work in a loop that counts without a pause, and then on a lock, as those of
// Redis do. The main thread takes a worker's lock to suspend it. Signals arrive while they count.
// All counts must end at the right values, and all work must be done once.
#include "spin_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { COUNT = 1000000 };

static struct worker {
    volatile uint32_t pending;
    uint32_t done;
    pthread_mutex_t lock;
    char pad[64];
} worker[1024];
static volatile uint32_t over;
static volatile sig_atomic_t signals;
static void on_signal(int s) {
    (void)s;
    signals++;
}

// All registers that a compiler can use are in use, and the flags are read after the loop.
__attribute__((noinline)) static uint64_t wait_for(volatile uint32_t *w, uint64_t a, uint64_t b) {
    uint64_t c = a * 3, d = b * 5, e = a ^ b, f = a + b, g = a - b, h = ~a, i;
    for (i = 0; i < COUNT; i++) {
        if (*w) break;
        __asm__ volatile(""
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
    EQ(c, a * 3);
    EQ(d, b * 5);
    EQ(e, a ^ b);
    EQ(f, a + b);
    EQ(g, a - b);
    EQ(h, ~a);
    return i;
}

static void work(struct worker *w, uint64_t me) {
    for (uint64_t turn = 0; !over; turn++) {
        uint64_t i = wait_for(&w->pending, me, turn);
        CHECK(i == COUNT || w->pending, "%lu turns, and nothing to do", (unsigned long)i);
        if (!w->pending) {
            pthread_mutex_lock(&w->lock);
            pthread_mutex_unlock(&w->lock);
            continue;
        }
        w->done++;
        __atomic_store_n(&w->pending, 0, __ATOMIC_SEQ_CST);
    }
}

static void hand_out(void) {
    uint32_t rounds = 0, n = (uint32_t)spin_threads;
    pthread_t self = pthread_self();
    for (spin_time_begins(500); rounds < 20 || !spin_time_over(); rounds++) {
        for (uint32_t i = 1; i < n; i++) {
            struct worker *w = &worker[i];
            if (i % 2 && rounds % 8 == 0) pthread_mutex_lock(&w->lock);
            if (i % 2 && rounds % 8 == 4) pthread_mutex_unlock(&w->lock);
            if (i % 2 && rounds % 8 < 4) continue; // the worker is suspended
            __atomic_store_n(&w->pending, 1, __ATOMIC_SEQ_CST);
        }
        for (uint32_t i = 1; i < n; i++)
            while (worker[i].pending) {}
        pthread_kill(self, SIGUSR1);
    }
    for (uint32_t i = 1; i < n && (rounds - 1) % 8 < 4; i += 2)
        pthread_mutex_unlock(&worker[i].lock);
    over = 1;
    for (uint32_t i = 1, r; i < n; i++) {
        for (uint32_t k = r = 0; k < rounds; k++) r += !(i % 2 && k % 8 < 4);
        EQ(worker[i].done, r);
    }
}

static void *run(void *arg) {
    int me = (int)(intptr_t)arg;
    if (me)
        work(&worker[me], (uint64_t)me);
    else
        hand_out();
    return arg;
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    for (int i = 0; i < spin_threads; i++) pthread_mutex_init(&worker[i].lock, NULL);
    signal(SIGUSR1, on_signal);
    signal(SIGALRM, on_signal);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, NULL);
    t_run(spin_threads, run);
    CHECK(signals > 0, "no signals");
    return t_ok("spin_seldom");
}
