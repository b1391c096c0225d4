/* SPDX-License-Identifier: MIT
 *
 * The ready list of a slot, and its order: docs/slots.md, "Order of ready threads".
 *
 *     head -> fresh, first come first served -> those whose slice has ended, first come first
 * served
 *
 * A thread that was woken, or comes back from the kernel, is fresh as long as it has had less of
 * the CPU than the others while they were there: so one that sleeps, and then has a little to do,
 * is not behind everyone who computes. A credit says that. It grows with the time since it was
 * looked at, by a share of as much as one of those on the list would have, up to a slice; what the
 * thread runs is taken from it. Both only while threads whose slice has ended are ready: without
 * them there is one order, and nothing to count.
 *
 * All but ready_slice_ended: under the slot's lock. A waker may look at the credit of a thread that
 * is still on its way out (docs/slots.md, block): what both write is a guess.
 */
#ifndef LISSOM_READY_H
#define LISSOM_READY_H

#include "sched/thread.h"

/* Whether threads whose slice has ended are ready on s. */
static inline bool ready_any_behind(const struct slot *s)
{
    return s->ready_count > s->fresh_count;
}

/* Whether t, woken or new, goes before those whose slice has ended. */
bool ready_is_fresh(const struct slot *s, struct thread *t);
/* t, which was woken, or is new. */
void ready_push(struct slot *s, struct thread *t);
/* n threads from head to tail, linked by next, which were woken. */
void ready_push_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n);
/* t, whose slice has ended, or which gives way by itself. */
void ready_push_behind(struct slot *s, struct thread *t);
/* t, which lets those that were woken go first. */
void ready_push_first_behind(struct slot *s, struct thread *t);
/* The next. Post: NULL: there is none. */
struct thread *ready_pop(struct slot *s);
/* t, which was popped last, becomes the next again: all is as it was before. (Otherwise threads at
 * the tail that run for a slice, and then look who would be next, had every turn.)
 * Pre: the lock was not dropped since. */
void ready_unpop(struct slot *s, struct thread *t);
/* Post: the list is empty; what was on it, linked by next. */
struct thread *ready_take_all(struct slot *s);

/* t, which has s, is about to leave it for a wait. */
void ready_charge(const struct slot *s, struct thread *t);
/* t has run for a slice: it is behind the others from now on, until it has waited. By t. */
void ready_slice_ended(struct thread *t);

#endif
