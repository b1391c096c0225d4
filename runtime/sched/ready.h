/* SPDX-License-Identifier: MIT
 *
 * The run queue of a slot, and its order (docs/design/slots.md, "Order of ready threads"):
 *
 *     head -> active threads, first in first out -> expired threads, first in first out
 *
 * A thread expires when it has run for a slice, or yields. A thread that was woken, or returns from
 * the kernel, is active as long as it has run less than the others. So a thread that sleeps, and
 * then has little to do, does not queue behind all that compute. Its lag is the time that it may
 * still run before them. The lag grows with time, by the share of one of the threads on the queue,
 * up to a slice. It shrinks by the time that the thread runs. Both only happen while expired
 * threads are ready: otherwise there is one order, and nothing to count.
 *
 * All functions but ready_slice_ended are called under the slot's lock. A waker may read the lag of
 * a thread that is still leaving its slot (docs/design/slot-protocol.md, block): the lag is a
 * guess.
 */
#ifndef LISSOM_READY_H
#define LISSOM_READY_H

#include "sched/thread.h"

/* Return whether expired threads are ready on s. */
static inline bool ready_any_expired(const struct slot *s)
{
    return s->ready_count > s->active_count;
}

/* Return whether t, woken or new, is active. Updates its lag. */
bool ready_is_active(const struct slot *s, struct thread *t);
/* Enqueue t, which was woken or is new. */
void ready_push(struct slot *s, struct thread *t);
/* Enqueue n woken threads from head to tail, linked by next. */
void ready_push_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n);
/* Enqueue t, which has run for a slice or yields, as the last expired thread. */
void ready_push_expired(struct slot *s, struct thread *t);
/* Enqueue t, which woken threads have preempted, as the first expired thread. */
void ready_push_first_expired(struct slot *s, struct thread *t);
/* Dequeue the next thread. Returns NULL if the queue is empty. */
struct thread *ready_pop(struct slot *s);
/* Put t, which was popped last, back as the next thread. (Otherwise an expired thread that runs for
 * a slice, and then pops the next thread, would get every turn.) Pre: the lock was not dropped
 * since the pop. */
void ready_unpop(struct slot *s, struct thread *t);
/* Empty the queue. Returns its threads, linked by next. */
struct thread *ready_take_all(struct slot *s);

/* Subtract the run time of t from its lag: t, which runs on s, is about to block. */
void ready_charge(const struct slot *s, struct thread *t);
/* Set t's lag to 0: t has run for a slice, or yields. By t. */
void ready_slice_ended(struct thread *t);

#endif
