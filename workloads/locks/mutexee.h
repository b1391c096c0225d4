/* SPDX-License-Identifier: MIT */
// Mutexee: B. Falsafi, R. Guerraoui, J. Picorel, V. Trigonakis, "Unlocking Energy", USENIX ATC
// 2016, section 5. A mutex that spins for longer than glibc's before it sleeps. Its holder, on
// release, waits for a moment whether a thread takes it in user space before it wakes a sleeper. If
// too many hand-overs go through the kernel all the same, it spins only briefly. Times are the
// paper's, at 2.8 GHz. The paper's bound on sleeps is left out.
//
// Memory ordering: taking the word acquires what its release published. A thread that goes to sleep
// adds to `sleepers`, then the kernel compares the word; a release stores the word, then reads
// `sleepers`. All four are sequentially consistent, so one side sees the other. A thread that takes
// the word in between reads `sleepers` when it releases.
#ifndef LISSOM_WORKLOADS_MUTEXEE_H
#define LISSOM_WORKLOADS_MUTEXEE_H

#include "preload.h"

// Nanoseconds: 8000 and 384 cycles, and 256 and 128 where spinning is in vain.
enum {
    MUTEXEE_SPIN = 2857,
    MUTEXEE_GRACE = 137,
    MUTEXEE_SPIN_LITTLE = 91,
    MUTEXEE_GRACE_LITTLE = 46
};
enum { MUTEXEE_PERIOD = 255, MUTEXEE_SLEPT_MOST = 76 /* 30 % */ };

static int mutexee_trylock(struct preload_lock *l) {
    uint32_t is_free = 0;
    return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong(&l->word, &is_free, 1);
}

// Count an acquisition, and choose the mode after each MUTEXEE_PERIOD of them. slept: whether the
// thread has slept for it. Pre: it holds the lock.
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
    // Read without the lock: `mode` is a hint here.
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
