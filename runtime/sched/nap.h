/* SPDX-License-Identifier: MIT
 *
 * Naps. A slot has only parked threads, and one that spins in their place, as it would natively
 * (sched/park.c). If nothing happens for long, that thread sleeps for moments: up to a 128th of the
 * time since the last event. Nobody wakes it when a word that it waits for changes, so it is late
 * by that much at most. Making another thread ready ends its nap. When these moments are long
 * enough, the monitor checks the words of all slots that nap, and the threads sleep for longer.
 */
#ifndef LISSOM_NAP_H
#define LISSOM_NAP_H

#include "sched/thread.h"

/* Return whether the thread of s may nap, if it waits: nothing has happened on s for long enough.
 * By the holder of s, at a spin site, while no other thread could run. */
bool nap_is_due(struct slot *s, uint64_t now /* tsc */);
/* Something has happened on s: restart the time until its thread naps. By the holder of s, or under
 * s->lock. */
static inline void nap_not_yet(struct slot *s)
{
    __atomic_store_n(&s->alone_at, 0, __ATOMIC_RELAXED);
}
/* Sleep for a moment, or until there is something to run on t's slot, or a signal comes. Pre: t
 * holds its slot and waits for the words of its last proof. */
void nap(struct thread *t);
/* Sleep for `us`, or until there is something to run on t's slot. Returns whether there is. Pre: t
 * holds its slot. */
bool nap_for(const struct thread *t, uint64_t us);

/* Steps of a nap of t, which holds its slot and sleeps by other means: nap_begin, sleep only if
 * nap_may_sleep, nap_finish. A thread that makes another ready in between calls turns_end. */
enum nap_kind { NAP_NONE, NAP_FOR_A_TIME, NAP_FOR_A_TURN };
void nap_begin(const struct thread *t, enum nap_kind kind);
bool nap_may_sleep(const struct thread *t);
/* Return whether there is something to run. */
bool nap_finish(const struct thread *t);
/* End a nap: a thread has been pushed to the list of s, which is busy, and no slot is idle. Pre: as
 * for slots_look_for_idle. */
void naps_end(const struct slot *s);
/* By the monitor: end the naps of slots with a thread whose wait is over. Returns the us until the
 * next call; 0 if no thread naps while it waits for words. */
uint64_t naps_look(void);

#endif
