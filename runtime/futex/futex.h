/* SPDX-License-Identifier: MIT
 *
 * Virtual blocking: futex wait queues in user space (docs/design/virtual-blocking.md).
 */
#ifndef LISSOM_FUTEX_H
#define LISSOM_FUTEX_H

#include "futex/deadline.h"

/* Perform futex(2) for t. Returns an ACTION_*; for ACTION_RETURN, r->rax is the result. */
long futex_call(struct thread *t, struct user_registers *r);
/* Uncount t: the kernel has performed a wait that futex_call had passed on with ACTION_CALL. */
void futex_call_done(struct thread *t, struct user_registers *r);
/* End t's wait with EINTR. Returns true if t was queued; t has been made ready. */
bool futex_interrupt(struct thread *t);
/* A wait of the runtime's own: block t while *word == value, until futex_wake_inside. Returns 0
 * (perhaps a spurious wake-up), -EAGAIN, -ETIMEDOUT, or -EINTR if a signal for t is pending. t
 * holds a slot on return. deadline: settled (deadline_settle); NULL: none. */
long futex_wait_inside(struct thread *t, const uint32_t *word, uint32_t value,
                       const struct deadline *deadline);
/* Wake a thread in futex_wait_inside. Returns whether one was waiting; it is ready now. Pre: the
 * caller has changed the word. */
bool futex_wake_inside(const uint32_t *word);
/* Wake up to n threads in futex_wait_inside. Returns whether any was waiting. Pre: the caller has
 * changed the word. */
bool futex_wake_some_inside(const uint32_t *word, int n);
void futex_init(void);
void futex_after_fork(void);
/* Wake every queued thread: a spurious wake-up, which futex(2) allows. */
void futex_end_all_waits(void);
/* Nonzero while threads wait in the kernel in ways that the queues do not know: then every wake
 * goes to the kernel, too. */
extern uint32_t futex_foreign_waiters;

#endif
