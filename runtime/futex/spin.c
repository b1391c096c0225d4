/* SPDX-License-Identifier: MIT */
#include "futex/queue.h"
#include "sched/contention.h"
#include "sched/user.h"

enum {
    SPIN_LONG_WAITS = 16, /* useless spins at an address that make spins rare there */
    SPIN_RETRY = 32,      /* then only one wait in so many begins with a spin */
};

bool futex_spin(struct thread *t, struct bucket *b, const uint32_t *word, uint32_t value)
{
    uint64_t last, now;
    if (threshold_event(t->slot))
        threshold_wait_begins(t->slot, tsc(), THRESHOLD_SAMPLE);
    if (slot_poll_in_place(t, word, value))
        return true;
    if (sched.slots < 2 || __atomic_load_n(&sched.idle_count, __ATOMIC_RELAXED) + 1 >= sched.slots)
        return false;
    uint16_t long_waits = __atomic_load_n(&b->spin_long_waits, __ATOMIC_RELAXED);
    if (long_waits >= SPIN_LONG_WAITS) {
        uint16_t skipped = __atomic_load_n(&b->spin_skipped, __ATOMIC_RELAXED);
        __atomic_store_n(&b->spin_skipped, (uint16_t)(skipped + 1), __ATOMIC_RELAXED);
        if (skipped % SPIN_RETRY)
            return false;
    }
    now = tsc();
    uint64_t until = now + threshold_ns() * sched.tsc_per_us / 1000;
    do {
        uint32_t is;
        if (lissom_guarded_load(word, &is) || is != value) {
            __atomic_store_n(&b->spin_long_waits, (uint16_t)(long_waits < 4 ? 0 : long_waits - 4),
                             __ATOMIC_RELAXED);
            return true;
        }
        cpu_relax();
        last = now;
        now = tsc();
    } while (now < until);
    contention_stood_still(last, now);
    if (long_waits < SPIN_LONG_WAITS)
        __atomic_store_n(&b->spin_long_waits, (uint16_t)(long_waits + 1), __ATOMIC_RELAXED);
    return false;
}
