/* SPDX-License-Identifier: MIT
 *
 * The structures of threads, which are used again when threads have ended. They are never freed, so
 * whoever has a pointer to one may follow it.
 */
#ifndef LISSOM_POOL_H
#define LISSOM_POOL_H

#include "sched/thread.h"

/* Post: a thread with its home, which are the caller's. It has ended for all others, until the
 * caller gives it a tid and says that it has not. NULL: no memory. Pre: all signals are blocked. */
struct thread *pool_take(void);
/* t has ended: its kernel thread goes on for a moment, on t's stack. */
void pool_put(struct thread *t);
/* In the child of a fork: all but self have ended. */
void pool_after_fork(const struct thread *self);

#endif
