/* SPDX-License-Identifier: MIT */
#include "sched/slices.h"
#include "sched/signals.h"
#include "sched/slots.h"

enum {
    LONGEST_US = 100000, /* longest slice, the kernel's limit */
    /* minimum run time of a computing thread before woken ones preempt it: some switches */
    LEAST_US = 50,
};

void slices_on_runners(const struct slot *s, void (*f)(struct thread *))
{
    struct thread *t = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&s->overcommit, __ATOMIC_RELAXED) && t && t->has_slot && t->slot == s)
        f(t);
    else /* several threads run, or the last of several has just left */
        threads_on_slot(s, f);
}

bool slot_over_slice(const struct thread *t)
{
    return slot_is_closed(t->slot) ||
           (slot_ready_count(t->slot) && t->slice_ran + tsc() - t->mounted_at > slice_of(t));
}

void slices_preempt(const struct slot *s)
{
    if (slices_make_way(s) && !sched.traced)
        slices_on_runners(s, signals_end_slice);
}

void slices_used_up(struct thread *t, bool looked)
{
    if (t->slice_ran + tsc() - t->mounted_at < SLICE_US * sched.tsc_per_us)
        return; /* its slot is closed */
    if (t->slice)
        count(longer_slices);
    if (!looked && !t->computes)
        t->scan_works = false; /* the scan was before its last wait */
    if (t->scan_works) {
        uint64_t longer = 2 * slice_of(t), longest = LONGEST_US * sched.tsc_per_us;
        __atomic_store_n(&t->slice, longer < longest ? longer : longest, __ATOMIC_RELAXED);
    }
    t->computes = true;
    t->slice_ran = 0;
}

bool slices_make_way(const struct slot *s)
{
    const struct thread *runner = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    return __atomic_load_n(&s->computing, __ATOMIC_RELAXED) &&
           __atomic_load_n(&s->active_count, __ATOMIC_RELAXED) && runner &&
           tsc() - __atomic_load_n(&runner->mounted_at, __ATOMIC_RELAXED) >
               LEAST_US * sched.tsc_per_us;
}

bool slices_only_compute(void)
{
    bool any = false;
    for (uint32_t i = 0; i < sched.slots; i++) {
        const struct slot *s = &sched.slot[i];
        bool busy = __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_BUSY;
        any |= busy;
        if ((busy && !__atomic_load_n(&s->computing, __ATOMIC_RELAXED)) ||
            __atomic_load_n(&s->active_count, __ATOMIC_RELAXED) ||
            __atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED) ||
            __atomic_load_n(&s->overcommit, __ATOMIC_RELAXED))
            return false;
    }
    return any;
}
