/* SPDX-License-Identifier: MIT
 *
 * System calls that set or read attributes of kernel threads, and which threads they pin
 * (docs/design/identity.md).
 */
#ifndef LISSOM_ATTRIBUTES_H
#define LISSOM_ATTRIBUTES_H

#include "sched/thread.h"

/* Perform the call for t. Each returns an ACTION_*. Pre: the caller is t; t is at home, except for
 * attributes_get_affinity. */
/* sched_setscheduler(2), sched_setparam(2), sched_setattr(2). */
long attributes_set_class(struct thread *t, struct user_registers *r);
long attributes_set_affinity(struct thread *t, struct user_registers *r);
long attributes_get_affinity(struct thread *t, struct user_registers *r);
long attributes_set_priority(struct thread *t, struct user_registers *r);
long attributes_set_io_priority(struct thread *t, struct user_registers *r);
/* timer_create(2) */
long attributes_make_timer(struct thread *t, struct user_registers *r);
long attributes_set_rseq(struct thread *t, struct user_registers *r);
/* perf_event_open(2) */
long attributes_count_events(struct thread *t, struct user_registers *r);
/* unshare(2), setns(2) */
long attributes_leave_namespace(struct thread *t, struct user_registers *r);

/* t's mask or scheduling attributes have been set, or t has turned out to be a thread of an OpenMP
 * runtime that binds its threads. Pin or unpin t accordingly. By t, at home or with all signals
 * blocked. */
void attributes_were_set(struct thread *t);

#endif
