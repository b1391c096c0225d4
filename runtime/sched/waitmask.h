/* SPDX-License-Identifier: MIT
 *
 * Calls that wait with another signal mask: sigsuspend(2), ppoll(2), pselect(2), epoll_pwait(2),
 * io_pgetevents(2), io_uring_enter(2).
 *
 * A signal that ends such a call is handled with the mask of the call, plus the action's mask and
 * the signal itself. The caller's own mask is restored when the handler returns. The kernel's frame
 * contains only that mask, and all signals are blocked while our handler runs. So the call's mask
 * is read from where the kernel has read it.
 */
#ifndef LISSOM_WAITMASK_H
#define LISSOM_WAITMASK_H

#include "sched/thread.h"

#include <ucontext.h>

/* Numbers that older headers lack. */
enum { IO_PGETEVENTS = 333, IO_URING_ENTER = 426, EPOLL_PWAIT2 = 441 };

/* t is about to make call nr, which may wait. */
void waitmask_begins(struct thread *t, long nr);
/* Return the mask with which a handler of the signal that interrupted `uc` begins, without the
 * action's mask and the signal. t: the interrupted thread; NULL: not ours. From our signal handler.
 * Only the first signal counts as having ended the call: for later ones, returns the caller's
 * mask. */
uint64_t waitmask_of_handler(struct thread *t, const ucontext_t *uc);
/* Set *mask to the mask of t's call. Returns false if the call has none. */
bool waitmask_of_call(const struct thread *t, const struct user_registers *r, uint64_t *mask);
/* Return the mask that t has where a signal interrupted `uc`: that of the call, or its own. */
uint64_t waitmask_in_force(const struct thread *t, const ucontext_t *uc);

#endif
