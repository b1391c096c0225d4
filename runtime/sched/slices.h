/* SPDX-License-Identifier: MIT
 *
 * Choose the length of slices, and whether woken threads preempt: docs/slots.md, longer slices.
 */
#ifndef LISSOM_SLICES_H
#define LISSOM_SLICES_H

#include "sched/thread.h"

enum { SLICE_US = 3000 }; /* CFS's; of who only computes it may be longer */

/* tsc: for so long t may run while others are ready. */
static inline uint64_t slice_of(const struct thread *t)
{
    uint64_t longer = __atomic_load_n(&t->slice, __ATOMIC_RELAXED);
    return longer ? longer : SLICE_US * sched.tsc_per_us;
}
/* t, which runs, has used up a slice. `looked`: t->scan_works is of now. */
void slices_used_up(struct thread *t, bool looked);
/* t, which runs on s, waits, or wakes others: its slices are short again. By t. */
static inline void slices_begin_anew(struct thread *t, struct slot *s)
{
    if (t->computes) {
        t->computes = false;
        __atomic_store_n(&s->computing, false, __ATOMIC_RELAXED);
        __atomic_store_n(&t->slice, 0, __ATOMIC_RELAXED);
        t->slice_ran = 0;
    }
}
/* A look at t, which runs on s, shows neither work nor a wait: its slices are half as long. By
 * t. */
static inline void slices_shorten(struct thread *t, struct slot *s)
{
    uint64_t half = slice_of(t) / 2;
    if (half < SLICE_US * sched.tsc_per_us)
        slices_begin_anew(t, s);
    else
        __atomic_store_n(&t->slice, half, __ATOMIC_RELAXED);
}
/* Whether threads that were woken are ready on s, and should go before the one that runs there: it
 * only computes, and has run for long enough to be worth a switch. A guess. */
bool slices_make_way(const struct slot *s);
/* Tells the thread that runs on s to make way, if it should. Pre: no slot's lock. */
void slices_preempt(const struct slot *s);

/* Whether all slots that are busy run threads that only compute, and the threads that are ready
 * have used up their slices. Whoever wakes another then tells these to make way, so nobody needs
 * the monitor's looks. A guess. */
bool slices_only_compute(void);

/* Calls f for the thread that runs on s, or for each of them if there are several. */
void slices_on_runners(const struct slot *s, void (*f)(struct thread *));

#endif
