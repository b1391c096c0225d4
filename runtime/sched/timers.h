/* SPDX-License-Identifier: MIT
 *
 * Time limits of waits whose threads have no kernel thread to sleep on: the monitor keeps them. The
 * functions have the names of docs/design/slot-protocol.md, Timers; docs/model/timers.pml is the
 * model.
 *
 * Times are in ns of a clock. CLOCK_REALTIME may be set at any time: see timers_watch.
 */
#ifndef LISSOM_TIMERS_H
#define LISSOM_TIMERS_H

#include "sched/thread.h"

enum timer_end { TIMER_ENDED = 2 /* t->interrupted: the timer has ended the wait */ };

enum timer_clock { TIMER_MONOTONIC, TIMER_REALTIME, TIMER_CLOCKS };

#define TIMERS_FOR_EVER UINT64_MAX

/* Return whether the monitor checks the timers before `ns` in any case. A guess: if it is wrong by
 * the time that the caller waits, timer_arm wakes the monitor. */
bool timers_watched(enum timer_clock clock, uint64_t ns);

/* End t's wait at `ns` of `clock`, if nothing else has ended it by then. `shard`: any number; few
 * threads should have the same. May take locks, and wake or start the monitor. Pre: t has just
 * queued itself, and has no timer. seq_cst: arms t before it reads when the monitor will check. */
void timer_arm(struct thread *t, uint32_t shard, enum timer_clock clock, uint64_t ns);

/* Cancel t's timer; the monitor no longer accesses it. By t, at the end of each wait for which it
 * was armed. Takes the shard's lock. */
void timer_disarm(struct thread *t);

/* End the wait of t, whose time is over. Returns true if t was queued: the caller has to make it
 * ready. Pre: the lock of t's shard, which is taken before a bucket's. Defined in futex/futex.c. */
bool timer_ends_wait(struct thread *t);

/* --- by the monitor --------------------------------------------------------------------------- */

/* Return whether threads have asked for timers: the monitor has to call the following. */
bool timers_in_use(void);
/* The monitor is about to sleep, until `until` of CLOCK_MONOTONIC at most. Returns when it has to
 * check the timers, which is no later. seq_cst: `until` is published before the timers are read.
 *
 * The clock is CLOCK_REALTIME only if nothing of the other clock is to come: then the kernel
 * notices when it is set. Otherwise the monitor checks at least ten times a second while there are
 * timers of CLOCK_REALTIME. */
struct timers_look {
    uint64_t ns;
    enum timer_clock clock;
};
struct timers_look timers_watch(uint64_t until);
/* End the waits whose time is over. Cheap while there are none. */
void timers_expire(void);
/* End all waits that have timers as spurious wake-ups, which futex(2) allows: there is no monitor
 * to end them. */
void timers_abandon(void);
/* Return whether a thread may have a timer. */
bool timers_any(void);

void timers_after_fork(void);

#endif
