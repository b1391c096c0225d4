/* SPDX-License-Identifier: MIT
 *
 * Signals of the program. Its handlers never run while their thread is inside the runtime. They
 * always run in the thread that the signal was for, and see the machine state as if lissom were not
 * there.
 */
#ifndef LISSOM_SIGNALS_H
#define LISSOM_SIGNALS_H

#include "sched/thread.h"

/* In a fork's child, on t's kernel thread: drop the deferred signals, which are the parent's. */
void signals_after_fork(struct thread *t);
/* Perform rt_sigprocmask(2). Returns an ACTION_*. */
long signals_sigprocmask(struct thread *t, struct user_registers *r);
/* Perform rt_sigreturn(2) at the end of a handler of the program: the call of lissom_return_site.
 * Returns only if signals have to be handled first, or if the kernel must make the call: an
 * ACTION_*. */
extern const struct patch_site lissom_return_site;
long signals_return(struct thread *t, struct user_registers *r);
/* signals_return for a thread that the runtime no longer knows; the caller makes the call natively.
 * `context`: of the frame. */
void signals_return_native(uintptr_t context);
/* rt_sigtimedwait(2) has returned: return whether it took a preemption signal of ours, pending
 * since t blocks it. */
bool signals_took_preempt(struct thread *t, const struct user_registers *r);
/* Clear t->pending_work, and notify the home thread of t's carrier of signals that have come for
 * it. Returns whether signals are deferred for t: then signals_leave has to follow. */
bool signals_notify_home(struct thread *t);
/* Return whether signals are deferred for t. This is certain, unlike t->pending_work, which may be
 * left over. */
bool signals_pending(const struct thread *t);
/* Leave the runtime with `action`: if signals are deferred for t, send them again, and return the
 * ACTION_RAISE form of `action`; otherwise return `action`. Clears t->pending_work. Pre: on the
 * runtime stack. */
long signals_leave(struct thread *t, struct user_registers *r, long action);
/* A wait has ended with -EINTR in r->rax: return the action, by the SA_RESTART of the handler.
 * `timed` waits are never restarted. */
long signals_end_wait(struct thread *t, struct user_registers *r, bool timed);
/* Make carrier k check k->reserved soon, even if its thread never enters the runtime. */
void signals_preempt(struct carrier *k);
/* Make t, if it runs, check whether it waits in a loop, and give way if it does. */
void signals_scan(struct thread *t);
/* Make t, if it runs, yield if others are ready and it has run for a slice. */
void signals_end_slice(struct thread *t);
/* Make t, if it runs on an extra place of its slot, give that up and wait for its turn. */
void signals_step_back(struct thread *t);

/* Block all signals of the calling kernel thread. Returns the previous mask, for signals_set_mask.
 * Needed for instance while a lock is held: the preemption signal may switch to another thread at
 * any instruction, which takes locks. */
static inline uint64_t signals_block_all(void)
{
    const uint64_t all = ~0ull;
    uint64_t mask = 0;
    prim_syscall4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &mask, 8);
    return mask;
}
/* Set the signal mask of the calling kernel thread. */
static inline void signals_set_mask(uint64_t mask)
{
    prim_syscall4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, 0, 8);
}
#endif
