/* SPDX-License-Identifier: MIT
 *
 * Naps: a slot has only parked threads, and one that spins in their place, as it would natively
 * (sched/park.c). If nothing happens for long, that one sleeps for moments: up to a 128th of the
 * time since something did. Nobody wakes it when a word changes that it waits for, so it is late by
 * so much at most; who makes a thread ready ends its nap. When these moments are long enough, the
 * monitor looks at the words of all slots that nap, and they sleep for longer.
 */
#ifndef LISSOM_NAP_H
#define LISSOM_NAP_H

#include "sched/thread.h"

/* The thread of s is at a spin site, and no other could run. Post: true: nothing has happened on s
 * for so long that it may nap, if it waits. By who holds s. */
bool nap_is_due(struct slot *s, uint64_t now /* tsc */);
/* Something has happened on s: the time begins anew. By who holds s, or under s->lock. */
static inline void nap_not_yet(struct slot *s)
{
    __atomic_store_n(&s->alone_at, 0, __ATOMIC_RELAXED);
}
/* t, which holds its slot and waits for the words of its last proof, sleeps for a moment, or until
 * there is something to run on its slot. A signal ends it, too. */
void nap(struct thread *t);
/* t, which holds its slot, sleeps for so long, or until there is something to run on its slot.
 * Post: true: there is. */
bool nap_for(const struct thread *t, uint64_t us);

/* The steps of a nap in which t, which holds its slot, sleeps by other means: begin, sleep only if
 * it may, finish. Whoever makes a thread ready in between calls turns_end. */
enum nap_kind { NAP_NONE, NAP_FOR_A_TIME, NAP_FOR_A_TURN };
void nap_begin(const struct thread *t, enum nap_kind kind);
bool nap_may_sleep(const struct thread *t);
/* Returns whether there is something to run. */
bool nap_finish(const struct thread *t);
/* A thread has been pushed to the list of s, which is busy, and no slot is idle. Pre: as
 * slots_look_for_idle. */
void naps_end(const struct slot *s);
/* Ends the naps of slots with a thread that waits no longer. Post: us until the next such look, or
 * 0: no thread naps while it waits for words. By the monitor. */
uint64_t naps_look(void);

#endif
