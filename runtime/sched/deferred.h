/* SPDX-License-Identifier: MIT
 *
 * Signals that a kernel thread has received for its home thread while that was elsewhere or in the
 * runtime. They are sent again when the home thread is home and about to leave the runtime.
 * docs/design/signals.md says how, and why none is lost.
 *
 * Unless said otherwise, functions run on k: in a handler of ours, or in k's home thread with all
 * signals blocked.
 */
#ifndef LISSOM_DEFERRED_H
#define LISSOM_DEFERRED_H

#include "sched/actions.h"

#include <ucontext.h>

/* blocked in our handlers, and while the deferred queue is emptied */
#define DEFERRED_ALL (~SYNCHRONOUS)
/* Return the mask of a closed carrier, which lets faults and the preemption signal through. */
static inline uint64_t deferred_closed_mask(void)
{
    return DEFERRED_ALL & ~signal_bit(preempt_signal());
}

/* Return whether no signal is deferred for k's home thread. From any thread. */
static inline bool deferred_empty(const struct carrier *k)
{
    return !__atomic_load_n(&k->deferred_count, __ATOMIC_ACQUIRE);
}
/* Return the oldest deferred signal: its action says whether the wait that it ends is restarted.
 * Pre: the queue is not empty. By the home thread, on any carrier. */
int deferred_first(const struct carrier *k);
/* Put `info`, which has arrived in our handler, in order behind older signals of its number that
 * were sent again. If there is one, *info becomes that one. */
void deferred_in_turn(struct carrier *k, siginfo_t *info);
/* Append `info` to the deferred queue or, if that is full, make it pending again. uc: the
 * handler's; its mask becomes deferred_closed_mask() if the queue is full now. */
void deferred_keep(struct carrier *k, const siginfo_t *info, ucontext_t *uc);
/* Send all deferred signals to the calling thread, which will restore `mask`. Post: the queue is
 * empty, and k not closed. */
void deferred_send_again(struct carrier *k, uint64_t mask);
/* Notify the home thread of its deferred signals. On k, while the home thread is not there: in the
 * runtime without a lock, or in a handler that has not interrupted the runtime. */
void deferred_notify(struct carrier *k);
void deferred_drop(struct carrier *k);

siginfo_t kept_unpack(const struct kept *kept);
/* Send `info` to the calling kernel thread, `tid`: the kernel allows any siginfo. Returns false if
 * the limit of pending signals was reached, and only a plain siginfo was sent. */
bool signal_to_self(int32_t tid, const siginfo_t *info);

/* Send k the preemption signal: its thread reacts whether or not it enters the runtime
 * (signals.c). */
void preempt_carrier(struct carrier *k, const char *mark);
/* Send the preemption signal to the carrier that runs t, unless t has left its slot. */
void preempt_thread(struct thread *t, const char *mark);
/* Discard a pending preemption signal 64. Call it before execve(2), and when the thread leaves the
 * runtime for good: there the program's action applies to signal 64, and the default one ends the
 * process. Signals 64 that the program has sent stay pending.
 *
 * Pre: on k, whose thread ID is `tid`. No carrier sends k a preemption signal any more, because its
 * thread has no slot, or k->tid is 0. */
void preempt_discard_pending(struct carrier *k, int32_t tid);
bool is_preempt_signal(int sig, const siginfo_t *info);
/* work_mark: check which thread wants this carrier. scan_mark: check whether the thread waits in a
 * loop. slice_mark: the slice is over. */
extern const char work_mark, scan_mark, slice_mark;

#endif
