/* SPDX-License-Identifier: MIT
 *
 * What slots.c and park.c share. For all others: sched/thread.h.
 */
#ifndef LISSOM_SLOTS_H
#define LISSOM_SLOTS_H

#include "sched/thread.h"

static inline uint32_t slot_ready_count(const struct slot *s) { return __atomic_load_n(&s->ready_count, __ATOMIC_RELAXED); }
/* slot_pop under s->lock. Post: a thread that can run, taken off the lists of s: not one whose wait goes on; or NULL. */
struct thread *slot_next(struct slot *s);
/* The same of any other slot than `thief`. Pre: no slot's lock. */
struct thread *slot_steal(const struct slot *thief);
/* Whether an extra thread that leaves s gives its place to the next ready one, instead of ending it. Pre: s->lock. */
bool slot_hands_on(const struct slot *s);
/* t, which has just been put on a list of s, leaves s to u; NULL: to nobody, for it had an extra place, which has ended.
 * Post: t has been given a slot again, and holds t->slot. */
void slot_hand_over(struct thread *t, struct slot *s, struct thread *u);
/* t leaves s, which is closed, and gets ready elsewhere; u takes its place, if it is not NULL. Pre: s->lock. Post: as of slot_hand_over; s->lock is
 * dropped. */
void slot_leave_closed(struct thread *t, struct slot *s, struct thread *u);

#endif
