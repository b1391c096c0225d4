/* SPDX-License-Identifier: MIT
 *
 * Slots and their lists: helpers that slots.c, park.c, poll.c and others share. The operations on
 * slots are in sched/thread.h.
 */
#ifndef LISSOM_SLOTS_H
#define LISSOM_SLOTS_H

#include "sched/thread.h"

static inline uint32_t slot_ready_count(const struct slot *s)
{
    return __atomic_load_n(&s->ready_count, __ATOMIC_RELAXED);
}
static inline bool slot_lists_nothing(const struct slot *s)
{
    return !slot_ready_count(s) && !__atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED);
}
/* Return the i-th slot after s, in a circle. It is open, or was closed a moment ago. */
static inline struct slot *slot_after(const struct slot *s, uint32_t i)
{
    return &sched.slot[(s->index + i) % slots_open()];
}
/* Return whether at most one slot is busy. */
static inline bool slots_one_is_busy(void)
{
    return slots_open() - __atomic_load_n(&sched.idle_count, __ATOMIC_SEQ_CST) <= 1;
}
/* Return whether other slots should leave the ready threads of s alone: they have just been
 * gathered there (futex/gather.h). */
static inline bool slot_is_kept(const struct slot *s)
{
    uint64_t until = __atomic_load_n(&s->kept_until, __ATOMIC_RELAXED);
    return until && tsc() < until;
}
/* Return whether a slot without threads could take any: ready or parked ones, of a slot that is not
 * kept. */
bool slots_anything_to_take(void);
/* Mark s, which is idle, as busy. Pre: s->lock. */
void slot_set_busy(struct slot *s);
/* Take the next thread that can run off the lists of s: none whose wait continues. Returns NULL if
 * there is none. Pre: s->lock. */
struct thread *slot_next(struct slot *s);
/* Take a thread that can run off the lists of another open slot than `thief`. Returns NULL if there
 * is none. Pre: no slot's lock. */
struct thread *slot_steal(const struct slot *thief);
/* slot_pop, after polling for events if that is due, or if nothing else is ready. */
struct thread *slot_pop_with_events(struct slot *s);
/* A thread has been pushed to a list of s, which is busy: find an idle slot for it. Pre: the lock
 * of s was dropped since: the fence between the push and the check. */
void slots_look_for_idle(struct slot *s);
/* Poll for a thread to run on s, which t holds. Returns that thread, perhaps t itself, or NULL. */
struct thread *slot_poll(struct thread *t, struct slot *s);
/* s has something to run: end the wait that began when it gave up polling. Pre: s->lock. */
void poll_ended(struct slot *s);
/* Return whether an extra thread that leaves s passes its place on to the next ready thread,
 * instead of ending it. Pre: s->lock. */
bool slot_hands_on(const struct slot *s);
/* Leave s to u (NULL: to nobody, since t's extra place has ended). Returns when t holds t->slot
 * again. Pre: t has just been put on a list of s. */
void slot_hand_over(struct thread *t, struct slot *s, struct thread *u);
/* Leave s, which is closed, to u (NULL: to nobody), and make t ready elsewhere. Drops s->lock.
 * Returns when t holds t->slot again. Pre: s->lock. */
void slot_leave_closed(struct thread *t, struct slot *s, struct thread *u);

#endif
