/* SPDX-License-Identifier: MIT */
// Mutexee: B. Falsafi, R. Guerraoui, J. Picorel, V. Trigonakis, "Unlocking Energy", USENIX ATC
// 2016, section 5. A mutex that spins for longer than glibc's before it sleeps, and whose holder,
// on leaving, waits for a moment whether somebody takes it in user space before it wakes a sleeper.
// If too many handovers go through the kernel all the same, it spins for a short time only. Times
// are the paper's, at 2.8 GHz; the paper's bound on how long a thread sleeps is left out.
//
// Orders: taking the word acquires what its release published. Who goes to sleep adds to `sleepers`
// and then has the kernel look at the word; who leaves stores the word and then looks at
// `sleepers`: one of the two sees the other, since all four are sequentially consistent. Who takes
// the word in the meantime will look at `sleepers` itself when it leaves.
#ifndef LISSOM_WORKLOADS_MUTEXEE_H
#define LISSOM_WORKLOADS_MUTEXEE_H

#include "preload.h"

// Nanoseconds: 8000 and 384 cycles; 256 and 128 where spinning is in vain.
enum {
    MUTEXEE_SPIN = 2857,
    MUTEXEE_GRACE = 137,
    MUTEXEE_SPIN_LITTLE = 91,
    MUTEXEE_GRACE_LITTLE = 46
};
enum { MUTEXEE_PERIOD = 255, MUTEXEE_SLEPT_MOST = 76 /* 30 % of them */ };

static int mutexee_trylock(struct preload_lock *l) {
    uint32_t is_free = 0;
    return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong(&l->word, &is_free, 1);
}

// Pre: it has the lock. `slept`: before that.
static void mutexee_count(struct preload_lock *l, int slept) {
    l->slept = (uint16_t)(l->slept + slept);
    if (++l->taken >= MUTEXEE_PERIOD) {
        l->mode = l->slept > MUTEXEE_SLEPT_MOST;
        l->taken = l->slept = 0;
    }
}

static void mutexee_lock(struct preload_lock *l) {
    if (mutexee_trylock(l)) {
        mutexee_count(l, 0);
        return;
    }
    // `mode` is a hint here: it is not read under the lock.
    int little = __atomic_load_n(&l->mode, __ATOMIC_RELAXED) != 0;
    for (int64_t until = preload_now() + (little ? MUTEXEE_SPIN_LITTLE : MUTEXEE_SPIN);
         preload_now() < until;) {
        if (mutexee_trylock(l)) {
            mutexee_count(l, 0);
            return;
        }
        preload_pause();
    }
    atomic_fetch_add(&l->sleepers, 1);
    while (!mutexee_trylock(l))
        preload_sleep(&l->word, 1);
    atomic_fetch_sub(&l->sleepers, 1);
    mutexee_count(l, 1);
}

static void mutexee_unlock(struct preload_lock *l) {
    int little = l->mode != 0;
    atomic_store(&l->word, 0);
    if (atomic_load(&l->sleepers) == 0)
        return;
    for (int64_t until = preload_now() + (little ? MUTEXEE_GRACE_LITTLE : MUTEXEE_GRACE);
         preload_now() < until;) {
        if (atomic_load_explicit(&l->word, memory_order_relaxed) != 0)
            return;
        preload_pause();
    }
    preload_wake(&l->word);
}

#endif
