/* SPDX-License-Identifier: MIT
 *
 * Signal masks. The runtime keeps the program's masks: the kernel never blocks faults and the
 * preemption signal (NEVER_BLOCKED), since any thread that runs on a carrier must receive them. If
 * another process or thread sends one of these while the program blocks it, it is listed. It stays
 * listed until a thread unblocks it or waits for it. docs/design/signals.md, "Masks";
 * docs/model/masks.pml.
 */
#ifndef LISSOM_MASK_H
#define LISSOM_MASK_H

#include "sched/actions.h"

#include <ucontext.h>

#define NEVER_BLOCKED (SYNCHRONOUS | PREEMPT_SIGNALS)

/* Set the program's mask of t. Listed signals for t that are no longer blocked become pending.
 * Returns the kernel's mask, which the caller has to put in force. Pre: by t, at home, with all
 * signals blocked but SYNCHRONOUS at most. */
uint64_t mask_set(struct thread *t, uint64_t mask);
/* Give the kernel t's whole mask until t's next system call: for a call that creates a thread,
 * process or program which inherits it. t stays at home meanwhile. `pending`: signals listed for t
 * become pending. Pre: by t, at home, in the runtime. */
void mask_give_kernel(struct thread *t, bool pending);
/* Give the kernel t's whole mask again. A handler of the program has interrupted t in the call, or
 * between it and mask_give_kernel or mask_before_wait. Returns the kernel's mask, which the caller
 * has to put in force. Pre: all signals are blocked. */
uint64_t mask_give_again(struct thread *t);
/* End mask_give_kernel or mask_before_wait. Pre: by t, at home, in the runtime. */
void mask_take_back(struct thread *t);
/* t, at home, is about to make a blocking call: listed signals that the call lets through, or waits
 * for, become pending. `waits`: the call will wait, so signals that t blocks must not interrupt
 * it. */
void mask_before_wait(struct thread *t, const struct user_registers *r, bool waits);
/* sigtimedwait(2) of t has returned. If the signal was sent to the process and passed on to t,
 * replace its siginfo by the original. */
void mask_after_wait(struct thread *t, struct user_registers *r);
/* `info` has arrived on k, in the handler that interrupted `uc`. Returns true if the program blocks
 * it there: then it has been listed, or passed on to a thread that does not block it. */
bool mask_holds(struct carrier *k, siginfo_t *info, bool for_thread, ucontext_t *uc);
/* Return whether `info`, which has arrived, was sent to the thread; otherwise to the process.
 * Removes the mark of mask_sigqueue. */
bool mask_is_for_thread(siginfo_t *info);
bool mask_blocks(const struct thread *t, int sig);
/* Perform rt_sigpending(2). Returns an ACTION_*. */
long mask_pending(struct thread *t, struct user_registers *r);
/* Perform rt_sigqueueinfo(2). Marks a signal to this process, since the handler could not
 * distinguish it from one sent to a thread by rt_tgsigqueueinfo(2). */
long mask_sigqueue(struct thread *t, struct user_registers *r);
/* t leaves the runtime for good. `exits`: it ends, and signals that only it may receive are
 * discarded; all signals are blocked from then on. Otherwise they become pending. Pre, unless it
 * exits: all signals are blocked. */
void mask_thread_ends(struct thread *t, bool exits);
/* All threads have left the runtime: send the listed signals to the process. */
void mask_all_left(void);
/* List no more signals: the process has a seccomp filter, which may forbid our calls. */
void mask_stop(void);
/* The program ignores `sig` from now on: remove it from the list. */
void mask_discard(int sig);
/* In a fork's child: empty the list, which holds the parent's signals. */
void mask_after_fork(void);

#endif
