/* SPDX-License-Identifier: MIT
 *
 * The time limits of waits whose threads have no kernel thread to keep them: the monitor does
 * (docs/slots.md, Timers, whose names these functions have; docs/model/timers.pml).
 *
 * A time is in ns of a clock. CLOCK_REALTIME may be set at any time: see timers_watch.
 */
#ifndef LISSOM_TIMERS_H
#define LISSOM_TIMERS_H

#include "sched/thread.h"

enum timer_end { TIMER_ENDED = 2 /* t->interrupted: the time limit has ended its wait */ };

enum timer_clock { TIMER_MONOTONIC, TIMER_REALTIME, TIMER_CLOCKS };

#define TIMERS_FOR_EVER UINT64_MAX

/* Whether the monitor looks before `ns` in any case. A guess that may be wrong by the time that the
 * caller waits: then it wakes the monitor. */
bool timers_watched(enum timer_clock clock, uint64_t ns);

/* t's wait ends at `ns` of `clock`, if nothing else has ended it by then. Pre: t has just queued
 * itself, and has no timer. seq_cst: t is armed before it looks when the monitor will look.
 * `shard`: any number; few threads should have the same. May take locks, wake or make the
 * monitor. */
void timer_arm(struct thread *t, uint32_t shard, enum timer_clock clock, uint64_t ns);

/* Post: t has no timer, and the monitor does not look at it. By t, at the end of each wait for
 * which it was armed; takes the shard's lock. */
void timer_disarm(struct thread *t);

/* Ends t's wait, whose time is over. Pre: the lock of t's shard, which comes before a bucket's.
 * Post: true: t was queued, and is the caller's to make ready. futex/futex.c. */
bool timer_ends_wait(struct thread *t);

/* --- by the monitor --------------------------------------------------------------------------- */

/* Threads have asked for timers: the following is needed. */
bool timers_in_use(void);
/* The monitor is about to sleep, until `until` of CLOCK_MONOTONIC at most. Post: when it has to
 * look, which is no later. CLOCK_REALTIME, only if nothing of the other clock is to come: then the
 * kernel sees when it is set. Else the monitor looks ten times a second at least, as long as there
 * are timers of it. seq_cst: `until` is seen before the timers are looked at. */
struct timers_look {
    uint64_t ns;
    enum timer_clock clock;
};
struct timers_look timers_watch(uint64_t until);
/* Ends the waits whose time is over. Cheap while there are none. */
void timers_expire(void);
/* There is none, and nobody will look: ends all waits that have timers, as wakes for nothing, which
 * futex(2) allows. */
void timers_abandon(void);
/* Somebody may have one. */
bool timers_any(void);

void timers_after_fork(void);

#endif
