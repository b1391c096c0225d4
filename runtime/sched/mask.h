/* SPDX-License-Identifier: MIT
 *
 * Signal masks. The runtime keeps the program's: faults and the preemption signal are never blocked
 * in the kernel (NEVER_BLOCKED), since whoever runs on a carrier has to receive them. One of these
 * that another process or thread sends, and that the program blocks, is kept in a list until a
 * thread unblocks it or waits for it. docs/signals.md, "Masks"; docs/model/masks.pml.
 */
#ifndef LISSOM_MASK_H
#define LISSOM_MASK_H

#include "sched/actions.h"

#include <ucontext.h>

#define NEVER_BLOCKED (SYNCHRONOUS | PREEMPT_SIGNALS)

/* The program's mask of t is now `mask`. What is listed for t, and not blocked any more, becomes
 * pending. Returns the kernel's mask, which is to be put in force.
 * Pre: by t, at home, with all signals blocked but SYNCHRONOUS at most. */
uint64_t mask_set(struct thread *t, uint64_t mask);
/* Until its next system call, t has its whole mask in the kernel too: for a call that makes a
 * thread, process or program which inherits it. t stays at home meanwhile. `pending`: what is
 * listed for t becomes pending. Pre: by t, at home, in the runtime. */
void mask_give_kernel(struct thread *t, bool pending);
/* The same after a handler of the program that has interrupted t between mask_give_kernel, or
 * mask_before_wait, and the call, or in the call. Returns the kernel's mask, which is to be put in
 * force. Pre: all signals are blocked. */
uint64_t mask_give_again(struct thread *t);
/* Ends that. Pre: by t, at home, in the runtime. */
void mask_take_back(struct thread *t);
/* t, at home, is about to make a blocking call: what the call lets through, or waits for, is not to
 * stay in the list. `waits`: it is going to wait, so what t blocks is not to interrupt it. */
void mask_before_wait(struct thread *t, const struct user_registers *r, bool waits);
/* sigtimedwait(2) of t has returned: the signal becomes the one that was sent to the process, if
 * it was passed on to t. */
void mask_after_wait(struct thread *t, struct user_registers *r);
/* `info` has arrived on k, in the handler that interrupted `uc`. Returns true if the program blocks
 * it there: it is listed now, or with a thread that does not block it. */
bool mask_holds(struct carrier *k, siginfo_t *info, bool for_thread, ucontext_t *uc);
/* Whether `info`, which has arrived, was sent to the thread or else to the process. Removes the
 * mark of mask_sigqueue. */
bool mask_is_for_thread(siginfo_t *info);
bool mask_blocks(const struct thread *t, int sig);
/* rt_sigpending(2). */
long mask_pending(struct thread *t, struct user_registers *r);
/* rt_sigqueueinfo(2): a signal to this process gets a mark, since the handler could not tell it
 * from one that rt_tgsigqueueinfo(2) has sent to a thread of it. */
long mask_sigqueue(struct thread *t, struct user_registers *r);
/* t leaves the runtime for good. `exits`: it ends, so what only it may receive is discarded; post:
 * all signals are blocked. Otherwise it becomes pending; pre: all signals are blocked. */
void mask_thread_ends(struct thread *t, bool exits);
/* All threads have left the runtime: what is still listed is sent to the process. */
void mask_all_left(void);
/* The process has a seccomp filter, which may forbid our calls: nothing is listed any more. */
void mask_stop(void);
/* The program ignores `sig` from now on: it is discarded where it is pending. */
void mask_discard(int sig);
/* In the child of a fork: what is listed was sent to the parent. */
void mask_after_fork(void);

#endif
