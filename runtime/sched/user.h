/* SPDX-License-Identifier: MIT
 *
 * Access to the program's memory, where any address may be bad. Our handler for SIGSEGV and SIGBUS
 * turns a fault of these accesses into -EFAULT (view_guarded_fault). The kernel never blocks these
 * signals for a registered thread (sched/mask.h). For other threads the kernel copies.
 *
 * The memory may be missing for long (userfaultfd(2)): touch it before taking a lock of the
 * runtime, not under the lock.
 *
 * Async-signal-safe, but not for our signal handler, where nothing is blocked: use
 * lissom_guarded_copy there.
 */
#ifndef LISSOM_USER_H
#define LISSOM_USER_H

#include "sched/thread.h"

long user_copy_unblocked(void *to, const void *from, size_t bytes);

/* Copy `bytes`. `t` is the caller; NULL: it is not registered. Returns 0, or -EFAULT. */
static inline long user_copy(const struct thread *t, void *to, const void *from, size_t bytes)
{
    return t ? lissom_guarded_copy(to, from, bytes) : user_copy_unblocked(to, from, bytes);
}

#endif
