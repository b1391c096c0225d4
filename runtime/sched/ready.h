/* SPDX-License-Identifier: MIT
 *
 * The run queue of a slot, and its order: docs/slots.md, "Order of ready threads".
 *
 *     head -> active threads, first in first out -> expired threads, first in first out
 *
 * A thread expires when it has run for a slice, or yields. A thread that was woken, or comes back
 * from the kernel, is active as long as it has run less than the others: so a thread that sleeps,
 * and then has a little to do, does not queue behind all that compute. Its lag says so, which is
 * what it may still run before them. The lag grows with time, by the share of one of the threads on
 * the queue, up to a slice, and shrinks by what the thread runs. Both only happen while expired
 * threads are ready: without them there is one order, and nothing to count.
 *
 * All functions but ready_slice_ended are called under the slot's lock. A waker may read the lag of
 * a thread that is still leaving its slot (docs/slots.md, block): what both write is a guess.
 */
#ifndef LISSOM_READY_H
#define LISSOM_READY_H

#include "sched/thread.h"

/* Whether expired threads are ready on s. */
static inline bool ready_any_expired(const struct slot *s)
{
    return s->ready_count > s->active_count;
}

/* Whether t, woken or new, is active. */
bool ready_is_active(const struct slot *s, struct thread *t);
/* Enqueues t, which was woken, or is new. */
void ready_push(struct slot *s, struct thread *t);
/* Enqueues n woken threads from head to tail, linked by next. */
void ready_push_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n);
/* Enqueues t, which has run for a slice, or yields, as the last expired thread. */
void ready_push_expired(struct slot *s, struct thread *t);
/* Enqueues t, which was preempted by woken threads, as the first expired thread. */
void ready_push_first_expired(struct slot *s, struct thread *t);
/* Takes the next thread off the queue. Returns NULL if the queue is empty. */
struct thread *ready_pop(struct slot *s);
/* Puts t, which was popped last, back: it is the next again. (Otherwise an expired thread that runs
 * for a slice, and then looks for the next one, would have every turn.) The lock must not have been
 * dropped since the pop. */
void ready_unpop(struct slot *s, struct thread *t);
/* Empties the queue. Returns its threads, linked by next. */
struct thread *ready_take_all(struct slot *s);

/* t, which runs on s, is about to block: takes what it has run from its lag. */
void ready_charge(const struct slot *s, struct thread *t);
/* t has run for a slice, or yields: it has no lag until it has waited. By t. */
void ready_slice_ended(struct thread *t);

#endif
