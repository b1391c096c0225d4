/* SPDX-License-Identifier: MIT
 *
 * The runtime's own lock. It spins for a bounded time, then sleeps in the kernel, so a preempted
 * holder costs its waiters no CPU time. Word: 0 free; 1 held; 2 held, and a thread may sleep
 * (Drepper, "Futexes are tricky", mutex 2).
 *
 * A holder never blocks or switches contexts, and runs no handler of the program: signals are
 * deferred while in the runtime. So a lock is held for a few loads and stores.
 */
#ifndef LISSOM_LOCK_H
#define LISSOM_LOCK_H

#include "prim/prim.h"

struct lock {
    uint32_t word;
};

#define PRIM_FUTEX_WAIT_PRIVATE 128
#define PRIM_FUTEX_WAKE_PRIVATE 129

static inline long prim_futex_wait(uint32_t *word, uint32_t value)
{
    return prim_syscall4(SYS_futex, word, PRIM_FUTEX_WAIT_PRIVATE, value, 0);
}
static inline long prim_futex_wake(uint32_t *word, int n)
{
    return prim_syscall4(SYS_futex, word, PRIM_FUTEX_WAKE_PRIVATE, n, 0);
}

static inline int lock_try(struct lock *l)
{
    uint32_t free = 0;
    return __atomic_compare_exchange_n(&l->word, &free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void lock_slow(struct lock *l);

/* Acquire l. Like lock_drop a full fence: both use locked instructions of x86. */
static inline void lock_take(struct lock *l)
{
    if (__builtin_expect(!lock_try(l), 0))
        lock_slow(l);
}

/* Release l. Pre: the caller holds it. */
static inline void lock_drop(struct lock *l)
{
    if (__builtin_expect(__atomic_exchange_n(&l->word, 0, __ATOMIC_SEQ_CST) == 2, 0))
        prim_futex_wake(&l->word, 1);
}

#endif
