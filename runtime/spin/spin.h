/* SPDX-License-Identifier: MIT
 *
 * Busy-waiting detection: what the rest of the runtime sees of it.
 */
#ifndef LISSOM_SPIN_H
#define LISSOM_SPIN_H

#include "sched/thread.h"

#include <stdbool.h>
#include <ucontext.h>

#include <stdint.h>

struct user_registers;

/* t, which is the caller and was interrupted in this state, gives way if it waits for another
 * thread's store and another can run. In a signal handler, on a stack with 8 KiB of room. Post:
 * false: it could not be looked at; otherwise t->scan_works is of now. */
bool spin_scanned(struct thread *t, const ucontext_t *uc);
/* t, the caller, calls sched_yield(2), with the registers r (yield.c). wanted: its slot is, by
 * others. Returns true if it has given way, parked or asleep, so that it need not yield. */
bool spin_yields(struct thread *t, const struct user_registers *r, bool wanted, uint64_t now);
/* The call has returned. began: tsc before the system call; 0: there was none, another thread of
 * the process has run. */
void spin_yielded(struct thread *t, uint64_t began);
/* sched_yield(2) takes so much longer than a system call that does nothing if it switches, and less
 * if it does not. */
enum { SPIN_SWITCH_NS = 600 };
/* Returns whether the sched_yield(2) that ran from `began` to `ended` (tsc) has switched.
 * Relaxed. */
static inline bool spin_switched(uint64_t began, uint64_t ended)
{
    return ended - began > __atomic_load_n(&sched.call_tsc, __ATOMIC_RELAXED) +
                               SPIN_SWITCH_NS * sched.tsc_per_us / 1000;
}
/* How long to wait between two looks: the shorter the more of them have found a thread waiting.
 * 100..3000. */
uint32_t spin_period_us(void);
/* Whether the thread of s is to be looked at now; then not again for a while. Looks that find it at
 * work take half a percent of its CPU time at most. Not asked for a thread alone, which is looked
 * at in a rhythm of its own (monitor/lone.c). */
bool spin_may_scan(struct slot *s, uint64_t now);

/* If a signal has interrupted a thread at a spin site, sets uc to the state before the site's
 * instruction, or behind it, from which the thread can go on. Async-signal-safe. */
void spin_leave_site(ucontext_t *uc);
/* t comes to its end. */
void spin_thread_ends(struct thread *t);

#endif
