/* SPDX-License-Identifier: MIT
 *
 * Attributes of a kernel thread that a system call can set, read or act by: credentials,
 * capabilities, namespaces, memory policy, I/O priority and so on. A thread whose attributes differ
 * from those of the process has a kernel thread to itself. It is pinned: nobody else is carried
 * there, and it is carried nowhere else. Threads that it creates inherit the attributes, and are
 * pinned, too. docs/design/identity.md has the table.
 */
#ifndef LISSOM_IDENTITY_H
#define LISSOM_IDENTITY_H

#include "sched/thread.h"

/* Make set*id(2), setgroups(2) or capset(2). libc makes every thread do the same; t stays on its
 * kernel thread only until all threads have done so. Returns an ACTION_*. Pre: t is at home. */
long identity_credentials(struct thread *t, struct user_registers *r);

/* Prepare a call that may give t an attribute of its own which its children inherit: prctl(2),
 * keyctl(2) and the like. Returns ACTION_DIRECT; t is at home then. */
long identity_call(struct thread *t, struct user_registers *r);

/* t is about to make a call that gives it an attribute of its own: pin it, unless it is the only
 * thread of the process. */
void identity_changes(struct thread *t, enum lissom_pin_reason reason);

/* t, at home, is about to create a thread whose thread-local storage is at `tls`: note the
 * attributes that this thread inherits. */
void identity_inherit(const struct thread *t, uint64_t tls);

/* Thread `tid` of this process, not registered yet, is about to get attributes of its own: note
 * that. A full fence: if the thread is registered afterwards, it may have missed the note. */
void identity_expect(int32_t tid);

/* t has just registered, on its own kernel thread. Returns whether it has attributes of its own,
 * inherited or noted by identity_expect. */
bool identity_begin(struct thread *t);

/* In a fork's child, by its only thread. */
void identity_after_fork(struct thread *t);

#endif
