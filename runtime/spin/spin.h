/* SPDX-License-Identifier: MIT
 *
 * Busy-waiting detection: the interface for the rest of the runtime.
 */
#ifndef LISSOM_SPIN_H
#define LISSOM_SPIN_H

#include "sched/thread.h"

#include <stdbool.h>
#include <ucontext.h>

#include <stdint.h>

struct user_registers;

/* Scan t, the calling thread, which was interrupted in the state uc. Give up its slot if it
 * busy-waits and another thread can run. Returns false if t could not be scanned; otherwise
 * t->scan_works is up to date. Runs in a signal handler; needs 8 KiB of stack. */
bool spin_scanned(struct thread *t, const ucontext_t *uc);
/* Handle a call of sched_yield(2) by t, the caller, with the registers r (yield.c). Park t, or let
 * it nap, if its loop is proven to wait. wanted: another thread wants t's slot. now: tsc. Returns
 * true if t parked or napped, so that it need not yield. */
bool spin_yields(struct thread *t, const struct user_registers *r, bool wanted, uint64_t now);
/* Note that t has yielded. began: tsc before the system call; 0: no system call was made, another
 * thread of the process ran. */
void spin_yielded(struct thread *t, uint64_t began);
/* A sched_yield(2) that switches takes at least this much longer than a system call without
 * effect. */
enum { SPIN_SWITCH_NS = 600 };
/* Returns whether the sched_yield(2) that ran from `began` to `ended` (tsc) switched threads.
 * Relaxed. */
static inline bool spin_switched(uint64_t began, uint64_t ended)
{
    return ended - began > __atomic_load_n(&sched.call_tsc, __ATOMIC_RELAXED) +
                               SPIN_SWITCH_NS * sched.tsc_per_us / 1000;
}
/* Returns the microseconds between two scans: 100 to 3000, and fewer the more scans find a waiting
 * thread. With --spin=observe the period is fixed. */
uint32_t spin_period_us(void);
/* Returns whether to scan the thread of s now; if so, not again for a while. Scans that find no
 * wait take at most half a percent of its CPU time. Not for a lone thread, which is scanned at
 * intervals of its own (monitor/lone.c). */
bool spin_may_scan(struct slot *s, uint64_t now);

/* If a signal interrupted a thread at a spin site, change uc to the state before or behind the
 * site's instruction. The thread can continue from there. Async-signal-safe. */
void spin_leave_site(ucontext_t *uc);
void spin_thread_ends(struct thread *t);

#endif
