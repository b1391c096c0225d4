/* SPDX-License-Identifier: MIT
 *
 * Virtual blocking for event loops: docs/events.md, whose names these are.
 */
#ifndef LISSOM_EVENTS_H
#define LISSOM_EVENTS_H

#include "sched/hooks.h"
#include "sched/thread.h"

/* Whether no thread has looked for events for a while. Only asked while events_watched(). */
bool events_due(uint64_t now /* tsc */);
/* Makes those ready whose events are there. */
void events_poll(void);
/* Makes one that waits ready: it will find nothing, and become the leader or wait again. */
void events_rouse(void);

/* epoll_wait(2), or epoll_pwait without a mask, by t, which holds its slot; nothing was there a
 * moment ago. Post: an ACTION_*, or EVENTS_NOT: the call is to be made as any other that blocks. */
enum { EVENTS_NOT = -1 };
long events_wait(struct thread *t, struct user_registers *r);

/* A system call that closes or replaces descriptors, by t. Post: true: r->rax is its result. */
bool events_guard_descriptor(struct user_registers *r);
/* From now on threads wait in the kernel; those that do not are woken. */
void events_give_up(void);
void events_after_fork(void);

#endif
