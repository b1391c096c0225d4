/* SPDX-License-Identifier: MIT
 *
 * Calls that wait with another signal mask: sigsuspend(2), ppoll(2), pselect(2), epoll_pwait(2).
 *
 * A signal that ends such a call is handled with the mask of the call, to which the action's and
 * the signal are added; the caller's own mask comes back when the handler returns. The kernel's
 * frame has the latter only, and while our handler runs all signals are blocked, so the mask of the
 * call is read where the kernel has read it.
 */
#ifndef LISSOM_WAITMASK_H
#define LISSOM_WAITMASK_H

#include "sched/thread.h"

#include <ucontext.h>

/* t is about to make call nr, which may wait. */
void waitmask_begins(struct thread *t, long nr);
/* The mask that a handler of a signal that has interrupted `uc` begins with, without the action's
 * and the signal. t: whom it has interrupted; NULL: not ours. From our signal handler. The first
 * signal only is said to have ended the call: others find the caller's mask. */
uint64_t waitmask_of_handler(struct thread *t, const ucontext_t *uc);
/* The mask of t's call; false: it has none. */
bool waitmask_of_call(const struct thread *t, const struct user_registers *r, uint64_t *mask);
/* The mask that t has where a signal has interrupted `uc`: a call's, or its own. */
uint64_t waitmask_in_force(const struct thread *t, const ucontext_t *uc);

#endif
