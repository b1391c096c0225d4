// What the spin_* programs share: a token that goes around threads which wait for it in loops of
// their own, for a bounded time. The wait loop of a turn is the program's.
#ifndef SPIN_TEST_H
#define SPIN_TEST_H
#include "pthread_futex.h"

struct spin_cell {
    volatile uint32_t word;
    uint32_t pad[31];
};
static struct spin_cell spin_cell[1024];
static int spin_threads;
static volatile uint32_t spin_last; // the round after which all go home
static int64_t spin_until;

// MS from the environment: how long a program goes on. So that it ends as soon natively, where a
// hand-off takes 6 ms.
static inline void spin_time_begins(int ms) {
    spin_until = t_now(CLOCK_MONOTONIC) + (int64_t)t_env("MS", ms) * 1000000;
}
static inline void spin_begin(int ms) {
    spin_last = UINT32_MAX;
    spin_time_begins(ms);
    memset(spin_cell, 0, sizeof spin_cell);
}
static inline int spin_time_over(void) { return t_now(CLOCK_MONOTONIC) > spin_until; }
// Thread `me` has the token of `round`: false if it is the last one. Before it is handed on.
static inline int spin_more(int me, uint32_t round) {
    if (me == 0 && round < spin_last && spin_time_over())
        __atomic_store_n(&spin_last, round, __ATOMIC_SEQ_CST);
    return round < spin_last;
}
static inline void spin_pass(int me, uint32_t round) {
    int next = (me + 1) % spin_threads;
    // The one behind the last gets it in the next round, even if there is none any more.
    __atomic_store_n(&spin_cell[next].word, next == 0 ? round + 1 : round, __ATOMIC_SEQ_CST);
}
static inline void spin_start_token(void) {
    __atomic_store_n(&spin_cell[0].word, 1, __ATOMIC_SEQ_CST);
}
#endif
