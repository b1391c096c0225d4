/* SPDX-License-Identifier: MIT
 *
 * System calls that set or tell attributes of kernel threads: what follows for who is carried where
 * (docs/identity.md).
 */
#ifndef LISSOM_ATTRIBUTES_H
#define LISSOM_ATTRIBUTES_H

#include "sched/thread.h"

/* t is about to make call `nr`, which may set an attribute of its own or of another thread. */
void attributes_note(struct thread *t, long nr, const struct user_registers *r);

/* sched_setscheduler(2) and its kin, sched_setaffinity(2), sched_getaffinity(2). Return an
 * ACTION_*. */
long attributes_set_class(struct thread *t, struct user_registers *r);
long attributes_set_affinity(struct thread *t, struct user_registers *r);
long attributes_get_affinity(struct thread *t, struct user_registers *r);

/* t's mask or scheduling attributes have been set, or t has turned out to be a thread of an OpenMP
 * runtime that binds its threads. Pin or unpin t accordingly. By t, at home or with all signals
 * blocked. */
void attributes_were_set(struct thread *t);

#endif
