/* SPDX-License-Identifier: MIT
 *
 * Calls that make a thread, a process or a program.
 */
#ifndef LISSOM_CLONE_H
#define LISSOM_CLONE_H

#include "sched/thread.h"

/* fork(2), vfork(2), clone(2), clone3(2). Returns an ACTION_*. */
long clone_call(struct thread *t, struct user_registers *r);
/* execve(2), execveat(2). Returns an ACTION_*. Pre: t is at home. */
long exec_call(struct thread *t, struct user_registers *r);
static inline bool clone_is_exec(long nr) { return nr == SYS_execve || nr == SYS_execveat; }

/* Finds out which of the two returns of a clone this is: to be called at the first call after it.
 * Post: true: the caller is a child that shares memory with its parent, whose thread t is: it must
 * write nothing. */
bool clone_is_shared_child(struct thread *t);

#endif
