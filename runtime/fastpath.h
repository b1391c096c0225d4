/* SPDX-License-Identifier: MIT
 *
 * Calls that may wait for something outside of the program: whether they do.
 */
#ifndef LISSOM_FASTPATH_H
#define LISSOM_FASTPATH_H

#include "prim/prim.h"
#include "sched/thread.h"

/* epoll_wait(2), but not with a signal mask of the call's own. */
static inline bool fastpath_for_events(const struct user_registers *r)
{
    return r->rax == SYS_epoll_wait || (r->rax == SYS_epoll_pwait && !r->r8);
}
/* Makes the call if it comes back at once whatever it finds, or if what it would wait for is there.
 * Wherever t is: what it did is nobody's business but the process's. Post: true: made, r->rax is
 * its result. */
bool fastpath_call(struct thread *t, struct user_registers *r);
/* Whether its descriptor had O_NONBLOCK when it was last looked at: the call is to be made at home,
 * with the slot. */
bool fastpath_likely(const struct user_registers *r);
/* From now on what a call finds may depend on the kernel thread that makes it (signalfd(2)). */
void fastpath_at_home_only(void);
/* The descriptor is about to be closed, replaced or changed. */
void fastpath_forget(uint32_t fd);
void fastpath_forget_range(uint32_t first, uint32_t last);
/* Pre: t is at home, and fastpath_call said no. Whether the slot is to be given up for the call:
 * that costs a switch, or two. */
bool fastpath_may_block(const struct user_registers *r);

#endif
