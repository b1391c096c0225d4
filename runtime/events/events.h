/* SPDX-License-Identifier: MIT
 *
 * Virtual blocking for event loops. docs/design/event-loops.md has the protocol and its terms.
 */
#ifndef LISSOM_EVENTS_H
#define LISSOM_EVENTS_H

#include "sched/hooks.h"
#include "sched/thread.h"

/* Return whether no thread has polled for events for a while. Pre: events_watched(). */
bool events_due(uint64_t now /* tsc */);
/* Poll for events, and make ready the threads whose events have come. */
void events_poll(void);
/* Make a waiting thread ready without an event: it becomes the leader, or waits again. */
void events_rouse(void);

/* Perform a blocking epoll_wait(2), or epoll_pwait(2) without a mask, for t. Returns an ACTION_*,
 * or EVENTS_NOT if the call is to be made like any other that blocks. Pre: the caller is t, which
 * holds its slot; a moment ago the call found nothing. */
enum { EVENTS_NOT = -1 };
long events_wait(struct thread *t, struct user_registers *r);

/* Keep a system call that closes or replaces descriptors from harming the runtime's own. Returns
 * true if the call is done: r->rax is its result. */
bool events_guard_descriptor(struct user_registers *r);
/* From now on let threads wait in the kernel. Wakes all that wait in user space. */
void events_give_up(void);
void events_after_fork(void);

#endif
