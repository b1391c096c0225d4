/* SPDX-License-Identifier: MIT
 *
 * Attributes of a kernel thread that a system call can set, read or act by: credentials,
 * capabilities, namespaces, memory policy, I/O priority and so on. A thread whose attributes differ
 * from those of the process keeps its kernel thread for itself: it is pinned, so nobody else is
 * carried there, and it is carried nowhere else. Threads that it makes inherit the attributes, and
 * are pinned too. docs/identity.md has the table.
 */
#ifndef LISSOM_IDENTITY_H
#define LISSOM_IDENTITY_H

#include "sched/thread.h"

/* set*id(2), setgroups(2), capset(2): made here. Pre: t is at home. libc makes every thread do the
 * same; t is pinned only until all threads have done so. Returns an ACTION_*. */
long identity_credentials(struct thread *t, struct user_registers *r);

/* Calls that may give t an attribute of its own which its children inherit: prctl(2), keyctl(2) and
 * the like. Returns ACTION_DIRECT. Post: t is at home. */
long identity_call(struct thread *t, struct user_registers *r);

/* t is about to make a call that gives it such an attribute: it is pinned, unless it is the
 * process's only thread. */
void identity_changes(struct thread *t, enum lissom_pin_reason reason);

/* t, at home, is about to make a thread whose thread-local storage is at `tls`. */
void identity_inherit(const struct thread *t, uint64_t tls);

/* Thread `tid` of this process, not known yet, is about to get attributes of its own. A full fence:
 * if the thread is known afterwards, it may have missed this. */
void identity_expect(int32_t tid);

/* t has just been registered, on its own kernel thread. Returns whether it has attributes of its
 * own, inherited or by identity_expect. */
bool identity_begin(struct thread *t);

/* In a fork's child, by its only thread. */
void identity_after_fork(struct thread *t);

#endif
