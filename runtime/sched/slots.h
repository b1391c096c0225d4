/* SPDX-License-Identifier: MIT
 *
 * Functions that slots.c, park.c and poll.c share. All other files use sched/thread.h.
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
/* The i-th after s. Open, or closed a moment ago. */
static inline struct slot *slot_after(const struct slot *s, uint32_t i)
{
    return &sched.slot[(s->index + i) % slots_open()];
}
/* Of all slots one at most is busy. */
static inline bool slots_one_is_busy(void)
{
    return slots_open() - __atomic_load_n(&sched.idle_count, __ATOMIC_SEQ_CST) <= 1;
}
/* Whether other slots are to leave the ready threads of s alone: they have just been gathered there
 * (futex/gather.h). */
static inline bool slot_is_kept(const struct slot *s)
{
    uint64_t until = __atomic_load_n(&s->kept_until, __ATOMIC_RELAXED);
    return until && tsc() < until;
}
/* Whether there is something for a slot without any: ready or parked threads that are not kept. */
bool slots_anything_to_take(void);
/* s is idle no more. Pre: s->lock. */
void slot_set_busy(struct slot *s);
/* slot_pop under s->lock. Post: a thread that can run, taken off the lists of s: not one whose wait
 * goes on; or NULL. */
struct thread *slot_next(struct slot *s);
/* The same of any other slot than `thief`. Pre: no slot's lock. */
struct thread *slot_steal(const struct slot *thief);
/* slot_pop after a look at the events that threads wait for if it is time, or if there is nothing
 * else to run. */
struct thread *slot_pop_with_events(struct slot *s);
/* A thread has been pushed to the list of s, which is busy: no slot may stay idle beside it. Pre:
 * the lock of s was dropped since: the fence between the push and the look. */
void slots_look_for_idle(struct slot *s);
/* Polls for something to run on s, which t holds. Post: a thread (perhaps t itself), or NULL. */
struct thread *slot_poll(struct thread *t, struct slot *s);
/* Slot s, idle since it gave up polling, has been given something to run. Pre: s->lock. */
void poll_ended(struct slot *s);
/* Whether an extra thread that leaves s gives its place to the next ready one, instead of ending
 * it. Pre: s->lock. */
bool slot_hands_on(const struct slot *s);
/* t, which has just been put on a list of s, leaves s to u; NULL: to nobody, for it had an extra
 * place, which has ended.
 * Post: t has been given a slot again, and holds t->slot. */
void slot_hand_over(struct thread *t, struct slot *s, struct thread *u);
/* t leaves s, which is closed, and gets ready elsewhere; u takes its place, if it is not NULL. Pre:
 * s->lock. Post: as of slot_hand_over; s->lock is dropped. */
void slot_leave_closed(struct thread *t, struct slot *s, struct thread *u);

#endif
