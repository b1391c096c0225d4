/* SPDX-License-Identifier: MIT
 *
 * Giving up as a whole (docs/limits.md): once sched.native_waits is set, every thread goes home,
 * gives its slot away, and leaves the runtime for good. The kernel then knows its alternate stack,
 * and the runtime knows the thread no more: as if lissom were not there. A thread leaves at its
 * next system call, or when the monitor preempts it.
 *
 * Those that have left and those that have not work together: all wait in the kernel, and all wake
 * those who wait there.
 */
#ifndef LISSOM_RELEASE_H
#define LISSOM_RELEASE_H

#include "sched/thread.h"

#include <ucontext.h>

static inline bool giving_up(void)
{
    return __atomic_load_n(&sched.native_waits, __ATOMIC_SEQ_CST);
}

/* t, at a system call: leaves the runtime for good, and makes the call natively. Returns only if
 * signals have to be handled first, or if t cannot leave now: an ACTION_*. */
long release_call(struct thread *t, struct user_registers *r);

/* t, in the runtime, is about to resume `uc`, with all signals blocked: if it can, it leaves for
 * good by that. */
void release_by(struct thread *t, ucontext_t *uc);

/* t goes home and gives its slot away. */
void release_slot(struct thread *t);

/* Sees to it that nobody waits for a slot, and preempts those that run, so that they leave. By the
 * monitor at each tick. Returns whether all have left. */
bool release_others(void);

/* t has given up: gives its slot away, and waits until the others have left, or are in a system
 * call of the program. After `timeout_ms` it waits only for those that have hardly had a CPU
 * meanwhile, for 15 times as long at most. */
void release_wait(struct thread *t, uint32_t timeout_ms);

#endif
