// Common part of the spin_* programs: a token that travels around threads for a limited time. The
// threads wait for it in wait loops of the program.
#ifndef SPIN_TEST_H
#define SPIN_TEST_H
#include "pthread_futex.h"

struct spin_cell {
    volatile uint32_t word;
    uint32_t pad[31];
};
static struct spin_cell spin_cell[1024];
static int spin_threads;
static volatile uint32_t spin_last; // the last round
static int64_t spin_until;

// Set the running time: MS in the environment, or `ms`. The limit is a time, since natively each
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
// Return whether a round follows `round`. Called by thread `me` before it passes the token on.
static inline int spin_more(int me, uint32_t round) {
    if (me == 0 && round < spin_last && spin_time_over())
        __atomic_store_n(&spin_last, round, __ATOMIC_SEQ_CST);
    return round < spin_last;
}
static inline void spin_pass(int me, uint32_t round) {
    int next = (me + 1) % spin_threads;
    // The successor of the last thread gets the token of the next round, even if there is none.
    __atomic_store_n(&spin_cell[next].word, next == 0 ? round + 1 : round, __ATOMIC_SEQ_CST);
}
static inline void spin_start_token(void) {
    __atomic_store_n(&spin_cell[0].word, 1, __ATOMIC_SEQ_CST);
}
#endif
