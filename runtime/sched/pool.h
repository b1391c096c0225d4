/* SPDX-License-Identifier: MIT
 *
 * The pool of thread structures. Structures of ended threads are reused, and never freed, so a
 * stale pointer to one can be dereferenced.
 */
#ifndef LISSOM_POOL_H
#define LISSOM_POOL_H

#include "sched/thread.h"

/* Allocate a thread and its home carrier. The thread is marked as ended until the caller has set
 * its tid and clears the mark. Returns NULL if out of memory. Pre: all signals are blocked. */
struct thread *pool_take(void);
/* Return t to the pool. Its kernel thread may still run on t's stack: pool_take does not
 * reuse t before that has exited. */
void pool_put(struct thread *t);
/* In the child of a fork: mark all threads but self as ended. */
void pool_after_fork(const struct thread *self);

#endif
