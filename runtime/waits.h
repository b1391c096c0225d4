/* SPDX-License-Identifier: MIT
 *
 * Calls that may wait for something outside of the program: whether they do.
 */
#ifndef LISSOM_WAITS_H
#define LISSOM_WAITS_H

#include "prim/prim.h"
#include "sched/thread.h"

/* epoll_wait(2), but not with a signal mask of the call's own. */
static inline bool waits_for_events(const struct user_registers *r)
{
    return r->rax == SYS_epoll_wait || (r->rax == SYS_epoll_pwait && !r->r8);
}
/* Makes the call if it comes back at once whatever it finds, or if what it would wait for is there.
 * Wherever t is: what it did is nobody's business but the process's. Post: true: made, r->rax is
 * its result. */
bool waits_not(const struct thread *t, struct user_registers *r);
/* Whether its descriptor had O_NONBLOCK when it was last looked at: the call is to be made at home,
 * with the slot. */
bool waits_never_likely(const struct user_registers *r);
/* From now on what a call finds may depend on the kernel thread that makes it (signalfd(2)). */
void waits_belong_to_threads(void);
/* The descriptor is about to be closed, replaced or changed. */
void waits_forget(uint32_t fd);
void waits_forget_range(uint32_t first, uint32_t last);
/* Pre: t is at home, and waits_not said no. Whether the slot is to be given up for the call: that
 * costs a switch, or two. */
bool waits_may_block(const struct user_registers *r);

#endif
