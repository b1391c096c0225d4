/* SPDX-License-Identifier: MIT
 *
 * Choose the length of slices, and whether woken threads preempt (docs/design/slots.md, Longer
 * slices).
 */
#ifndef LISSOM_SLICES_H
#define LISSOM_SLICES_H

#include "sched/thread.h"

enum { SLICE_US = 3000 }; /* as CFS; longer for threads that only compute */

/* Return the time that t may run while others are ready, in tsc ticks. */
static inline uint64_t slice_of(const struct thread *t)
{
    uint64_t longer = __atomic_load_n(&t->slice, __ATOMIC_RELAXED);
    return longer ? longer : SLICE_US * sched.tsc_per_us;
}
/* t, which runs, has used up a slice: choose its next one. `looked`: t->scan_works is current. */
void slices_used_up(struct thread *t, bool looked);
/* Make the slices of t short again: it runs on s, and waits or wakes others. By t. */
static inline void slices_begin_anew(struct thread *t, struct slot *s)
{
    if (t->computes) {
        t->computes = false;
        __atomic_store_n(&s->computing, false, __ATOMIC_RELAXED);
        __atomic_store_n(&t->slice, 0, __ATOMIC_RELAXED);
        t->slice_ran = 0;
    }
}
/* Halve the slices of t, which runs on s: a scan has shown neither work nor a wait. By t. */
static inline void slices_shorten(struct thread *t, struct slot *s)
{
    uint64_t half = slice_of(t) / 2;
    if (half < SLICE_US * sched.tsc_per_us)
        slices_begin_anew(t, s);
    else
        __atomic_store_n(&t->slice, half, __ATOMIC_RELAXED);
}
/* Return whether woken threads are ready on s and should preempt its thread: that only computes,
 * and has run long enough to be worth a switch. A guess. */
bool slices_make_way(const struct slot *s);
/* Preempt the thread that runs on s if woken threads should run first. Pre: no slot's lock. */
void slices_preempt(const struct slot *s);

/* Return whether all busy slots run threads that only compute, and all ready threads have used up
 * their slices. Then wakers preempt them (slices_preempt), so the monitor need not scan. A
 * guess. */
bool slices_only_compute(void);

/* Call f for the thread that runs on s, or for each of them if there are several. */
void slices_on_runners(const struct slot *s, void (*f)(struct thread *));

#endif
