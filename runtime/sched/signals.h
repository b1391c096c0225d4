/* SPDX-License-Identifier: MIT
 *
 * Handlers of the program never run while their thread is inside the runtime, always run in the
 * thread that the signal was for, and see the machine state as if lissom were not there.
 */
#ifndef LISSOM_SIGNALS_H
#define LISSOM_SIGNALS_H

#include "sched/thread.h"

/* In the child, on t's kernel thread: signals that were kept are the parent's. */
void signals_after_fork(struct thread *t);
/* rt_sigprocmask(2). */
long signals_sigprocmask(struct thread *t, struct user_registers *r);
/* rt_sigreturn(2) at the end of a handler of the program: the call of lissom_return_site. Returns
 * only if signals have to be handled first: an ACTION_*. */
extern const struct patch_site lissom_return_site;
long signals_return(struct thread *t, struct user_registers *r);
/* The same of a thread that is not known any more; the call is made natively then. `context`: of
 * the frame. */
void signals_return_native(uintptr_t context);
/* rt_sigtimedwait(2) has returned: whether with a preemption signal of ours, which was pending
 * since t blocks it. */
bool signals_took_preempt(struct thread *t, const struct user_registers *r);
/* pending_work was set. Tells the home thread of t's carrier what has come for it. Post: whether a
 * signal for t is there: to be followed by signals_leave. */
bool signals_notify_home(struct thread *t);
/* A signal for t waits to be handled: as opposed to t->pending_work, which may be left over, this
 * is certain. */
bool signals_pending(const struct thread *t);
/* t leaves the runtime with `action`: if a signal waits for it, the action that raises it first.
 * Pre: on the runtime stack. Post: action, or its ACTION_RAISE form. Clears t->pending_work. */
long signals_leave(struct thread *t, struct user_registers *r, long action);
/* A wait has ended with -EINTR in r->rax: the action, by the handler's SA_RESTART. `timed` waits
 * are never restarted. */
long signals_end_wait(struct thread *t, struct user_registers *r, bool timed);
/* Makes carrier k look at k->reserved soon, even if what it runs never enters the runtime. */
void signals_preempt(struct carrier *k);
/* Makes t, if it runs, look whether it waits in a loop, and give way if so. */
void signals_scan(struct thread *t);
/* t, which runs, gives way if others are ready and it has run for a slice. */
void signals_end_slice(struct thread *t);
/* t, which runs on a slot that several threads have, waits for its turn. */
void signals_step_back(struct thread *t);

/* Blocks all signals of the calling kernel thread, and returns the mask before, for
 * signals_set_mask. For instance while a lock is held: the preemption signal may switch to another
 * thread at any instruction, and that takes locks. */
static inline uint64_t signals_block_all(void)
{
    const uint64_t all = ~0ull;
    uint64_t mask = 0;
    prim_syscall4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &mask, 8);
    return mask;
}
/* Of the calling kernel thread. */
static inline void signals_set_mask(uint64_t mask)
{
    prim_syscall4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, 0, 8);
}
#endif
