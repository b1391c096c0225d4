/* SPDX-License-Identifier: MIT
 *
 * Signals that a kernel thread has received for its home thread while that was elsewhere or in the
 * runtime, and that are sent again once it is home and about to leave it. docs/signals.md says how
 * and why it loses none.
 *
 * Unless said otherwise: on k, by a handler of ours or by k's home thread with all signals blocked.
 */
#ifndef LISSOM_DEFERRED_H
#define LISSOM_DEFERRED_H

#include "sched/actions.h"

#include <ucontext.h>

/* blocked in handlers of ours, and while the deferred queue is emptied */
#define DEFERRED_ALL (~SYNCHRONOUS)
/* Blocked on a closed carrier: the preemption signal gets through. */
static inline uint64_t deferred_closed_mask(void)
{
    return DEFERRED_ALL & ~signal_bit(preempt_signal());
}

/* Of k's home thread; from anywhere. */
static inline bool deferred_empty(const struct carrier *k)
{
    return !__atomic_load_n(&k->deferred_count, __ATOMIC_ACQUIRE);
}
/* Whose wait is ended by it, to see whether it is restarted. Pre: not empty; by the home thread,
 * from anywhere. */
int deferred_first(const struct carrier *k);
/* `info` arrived in a handler of ours. If it was sent again, or stands before one that was, it
 * becomes the one whose turn it is. */
void deferred_in_turn(struct carrier *k, siginfo_t *info);
/* Post: in the deferred queue, or pending again behind it. uc: of the handler; its mask becomes
 * deferred_closed_mask() if that was the last place. */
void deferred_keep(struct carrier *k, const siginfo_t *info, ucontext_t *uc);
/* Sends all that are kept to the caller, who goes back to `mask`. Post: empty, and not closed. */
void deferred_send_again(struct carrier *k, uint64_t mask);
/* The home thread learns of it. On k, while the home thread is not there: in the runtime without a
 * lock, or in a handler that has interrupted none of the runtime. */
void deferred_notify(struct carrier *k);
void deferred_drop(struct carrier *k);

siginfo_t kept_unpack(const struct kept *kept);
/* The calling kernel thread, `tid`, sends itself `info`: the kernel allows any. At the limit of
 * pending signals it only takes one that says nothing (post: false). */
bool signal_to_self(int32_t tid, const siginfo_t *info);

/* Rings at k: what runs there answers, whether or not it enters the runtime (signals.c). */
void preempt_carrier(struct carrier *k, const char *mark);
/* At who runs t, unless t has left its slot. */
void preempt_thread(struct thread *t, const char *mark);
/* Discard a pending preemption signal 64. Call it before execve(2) and when the thread leaves the
 * runtime for good: there the program's action applies to signal 64, and the default one ends the
 * process. Signals 64 that the program has sent stay pending.
 * Pre: on k, whose thread ID is `tid`. No carrier sends k a preemption signal any more, because its
 * thread has no slot, or k->tid is 0. */
void preempt_discard_pending(struct carrier *k, int32_t tid);
bool is_preempt_signal(int sig, const siginfo_t *info);
/* look who wants this carrier; look whether you wait in a loop; your slice is over */
extern const char work_mark, scan_mark, slice_mark;

#endif
