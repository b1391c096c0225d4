/* SPDX-License-Identifier: MIT
 *
 * System calls that create a thread or a process, or execute a program.
 */
#ifndef LISSOM_CLONE_H
#define LISSOM_CLONE_H

#include "sched/thread.h"

/* Perform fork(2), vfork(2), clone(2) or clone3(2). Returns an ACTION_*. */
long clone_call(struct thread *t, struct user_registers *r);
/* Prepare execve(2) or execveat(2). Returns an ACTION_*. Pre: t is at home. */
long exec_call(struct thread *t, struct user_registers *r);
static inline bool clone_is_exec(long nr) { return nr == SYS_execve || nr == SYS_execveat; }

/* Return whether the caller is the child of a clone that shares memory with its parent, whose
 * thread t is. Such a child must write nothing. If the caller is a child with a copy of the memory,
 * initializes the runtime for it. Call this at the first system call after a clone, which returns
 * twice. */
bool clone_is_shared_child(struct thread *t);

#endif
