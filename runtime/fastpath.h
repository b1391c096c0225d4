/* SPDX-License-Identifier: MIT
 *
 * System calls that may wait for something outside of the program: whether a call would wait, and
 * whether to give up the slot for it.
 */
#ifndef LISSOM_FASTPATH_H
#define LISSOM_FASTPATH_H

#include "prim/prim.h"
#include "sched/thread.h"

/* Return whether the call is epoll_wait(2), or epoll_pwait(2) without a signal mask. */
static inline bool fastpath_for_events(const struct user_registers *r)
{
    return r->rax == SYS_epoll_wait || (r->rax == SYS_epoll_pwait && !r->r8);
}
/* Issue t's system call now if it cannot block, or try it without blocking. Returns true if the
 * call is done: r->rax is its result. Returns false if the call is still to be made. t may be away
 * from home, since only the process matters to such a call. */
bool fastpath_call(struct thread *t, struct user_registers *r);
/* Return whether the call's descriptor never waits (O_NONBLOCK, or a regular file), as last seen.
 * Make such a call at home, and keep the slot. */
bool fastpath_likely(const struct user_registers *r);
/* From now on make these calls at home only: results may depend on the kernel thread
 * (signalfd(2)). */
void fastpath_at_home_only(void);
/* Forget descriptor fd, or first to last, which is about to be closed, replaced or changed. */
void fastpath_forget(uint32_t fd);
void fastpath_forget_range(uint32_t first, uint32_t last);
/* Return whether to give up the slot for the call, which costs one or two switches. Pre: t is at
 * home, and fastpath_call returned false. */
bool fastpath_may_block(const struct user_registers *r);

#endif
