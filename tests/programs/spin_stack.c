// A token travels around a ring of threads. Each waits for it on its own stack, in a predicate that
// also reads a word that never changes. A runtime that took only that word for the end of the wait
// would suspend the thread for up to 64 ms at each hand-over. In every second round the wait is
// counted, and restarts when the count is over.
#include "spin_test.h"

enum { ROUNDS = 300 };

struct seat {
    volatile uint32_t token;
    volatile uint8_t there; // `token` as a byte
};

static struct seat *volatile seat_of[1024];
static volatile uint32_t never;
static uint32_t done;

__attribute__((noinline)) static void wait_endless(const struct seat *s) {
    while (!s->token && !never) __builtin_ia32_pause();
}

__attribute__((noinline)) static int wait_counted(const struct seat *s) {
    for (int i = 0; i < 100000; i++) {
        if (s->there || never) return 1;
        __builtin_ia32_pause();
    }
    return 0;
}

static void give(struct seat *to, uint32_t round) {
    to->token = round;
    to->there = 1;
}

static void *in_ring(void *arg) {
    int me = (int)(intptr_t)arg, next = (me + 1) % spin_threads;
    struct seat mine = {0, 0};
    if (me == 0) give(&mine, 1);
    seat_of[me] = &mine;
    while (!seat_of[next]) t_sleep_us(100);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (i % 2)
            wait_endless(&mine);
        else
            while (!wait_counted(&mine)) continue;
        while (!mine.token || !mine.there) __builtin_ia32_pause();
        EQ(mine.token, i);
        mine.token = 0;
        mine.there = 0;
        if (next || i < ROUNDS) give(seat_of[next], next ? i : i + 1);
    }
    // Until all have finished, others may write to this stack.
    __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < (uint32_t)spin_threads) t_sleep_us(100);
    return arg;
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    t_run(spin_threads, in_ring);
    return t_ok("spin_stack");
}
