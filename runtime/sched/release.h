/* SPDX-License-Identifier: MIT
 *
 * Giving up (docs/design/lifecycle.md). Once sched.native_waits is set, every thread migrates home,
 * releases its slot, and leaves the runtime for good. The kernel then has its alternate stack, and
 * the runtime no longer knows the thread, as if lissom were not there. A thread leaves at its next
 * system call, or when the monitor preempts it.
 *
 * Threads that have left and threads that have not work together: all wait in the kernel, and all
 * wake those that wait there.
 */
#ifndef LISSOM_RELEASE_H
#define LISSOM_RELEASE_H

#include "sched/thread.h"

#include <ucontext.h>

static inline bool giving_up(void)
{
    return __atomic_load_n(&sched.native_waits, __ATOMIC_SEQ_CST);
}

/* Leave the runtime for good with t, and make its system call natively. Returns an ACTION_*, and
 * only if signals have to be handled first, or if t cannot leave now. */
long release_call(struct thread *t, struct user_registers *r);

/* t, in the runtime with all signals blocked, is about to resume `uc`: prepare it to leave the
 * runtime for good by that, if it can. */
void release_by(struct thread *t, ucontext_t *uc);

/* Migrate t home and release its slot. */
void release_slot(struct thread *t);

/* By the monitor at each tick: run all threads that wait for a slot, and preempt those that run, so
 * that they leave. Returns whether all have left. */
bool release_others(void);

/* Release t's slot, and wait until the other threads have left or are in a system call of the
 * program. After `timeout_ms`, wait only for those that have hardly had a CPU meanwhile, for up to
 * 15 times as long. */
void release_wait(struct thread *t, uint32_t timeout_ms);

#endif
