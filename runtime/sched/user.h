/* SPDX-License-Identifier: MIT
 *
 * The program's memory, of which any address may be bad. A fault of these accesses is turned into
 * -EFAULT by our handler for SIGSEGV and SIGBUS (view_guarded_fault), which the kernel never blocks
 * for a thread that is known (sched/mask.h). For others the kernel copies.
 *
 * The memory may be missing for long (userfaultfd(2)): touch it before a lock of ours is taken, not
 * under it.
 *
 * Not from our signal handler, where nothing is blocked: there lissom_guarded_copy does.
 * Async-signal-safe.
 */
#ifndef LISSOM_USER_H
#define LISSOM_USER_H

#include "sched/thread.h"

long user_copy_unblocked(void *to, const void *from, size_t bytes);

/* 0, or -EFAULT. `t` is the caller; NULL: not known. */
static inline long user_copy(const struct thread *t, void *to, const void *from, size_t bytes)
{
    return t ? lissom_guarded_copy(to, from, bytes) : user_copy_unblocked(to, from, bytes);
}

#endif
