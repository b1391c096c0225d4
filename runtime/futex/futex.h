/* SPDX-License-Identifier: MIT
 *
 * Virtual blocking: futex wait queues in user space (docs/slots.md, "Futex").
 */
#ifndef LISSOM_FUTEX_H
#define LISSOM_FUTEX_H

#include "futex/deadline.h"

/* Handles futex(2) for t. Post: an ACTION_*; for ACTION_RETURN r->rax is the result. */
long futex_call(struct thread *t, struct user_registers *r);
/* After the kernel has performed the call that futex_call had passed on with ACTION_CALL. */
void futex_call_done(struct thread *t, struct user_registers *r);
/* Ends t's wait with EINTR if it is in one. Post: true: t was queued and has been made ready. */
bool futex_interrupt(struct thread *t);
/* The runtime's own: t waits as long as *word == value, and is woken by futex_wake_inside. Post: 0
 * (perhaps for nothing), -EAGAIN, -ETIMEDOUT, or -EINTR: a signal for t waits; t holds a slot. Pre
 * of a deadline (NULL: none): it is settled. */
long futex_wait_inside(struct thread *t, const uint32_t *word, uint32_t value,
                       const struct deadline *deadline);
/* By whoever has changed the word. Post: whether somebody waited, who is ready now. */
bool futex_wake_inside(const uint32_t *word);
/* n of them at most. */
bool futex_wake_some_inside(const uint32_t *word, int n);
void futex_init(void);
void futex_after_fork(void);
/* Wakes every thread that is queued, as futex(2) may at any time. */
void futex_end_all_waits(void);
/* While it is not zero, threads wait in the kernel in ways that the queues do not know: every wake
 * goes there too. */
extern uint32_t futex_foreign_waiters;

#endif
