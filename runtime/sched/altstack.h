/* SPDX-License-Identifier: MIT
 *
 * sigaltstack(2). The kernel has the signal stack of each carrier in place of what the program
 * sets: our handler, which is the first to take every signal, must not write on stacks of the
 * program. The program's alternate stack belongs to its thread, and takes the frames of its own
 * SA_ONSTACK handlers.
 */
#ifndef LISSOM_ALTSTACK_H
#define LISSOM_ALTSTACK_H

#include "sched/thread.h"

#include <ucontext.h>

/* Makes the kernel take signals of this kernel thread, k, on k's signal stack. What was set before
 * becomes t's. */
void altstack_begin(struct thread *t, struct carrier *k);

/* The program has replaced the signal stack of k, which runs t (NULL: nobody), by a system call
 * that is not redirected, and our handler runs there. t gets what it wanted, and k its own again,
 * at once: from now on a frame of the kernel would overwrite what is on the program's stack while t
 * is on its runtime stack. The kernel refuses the call on the stack that is to be replaced, and
 * ignores uc_stack when a handler returns from there (Linux 6.18), so the call is made with the
 * stack pointer on k's signal stack.
 * Pre: all signals are blocked; `uc` is the frame's. */
void altstack_take_back(struct thread *t, struct carrier *k, ucontext_t *uc);

/* sigaltstack(2) by t. Returns an ACTION_*. */
long altstack_call(struct thread *t, struct user_registers *r);

/* Where the frame of a handler with these flags goes, if t is interrupted with stack pointer `sp`:
 * the frame's upper end, and in *lowest the end that it must not pass (0: unknown). Does what the
 * kernel does to SS_AUTODISARM: call it once a frame. *saved: the stack as uc_stack of that frame
 * has it. */
uintptr_t altstack_for(struct thread *t, unsigned long flags, uintptr_t sp, uintptr_t *lowest,
                       stack_t *saved);

/* t returns from a handler to stack pointer `sp`, with `stack` in its frame. */
void altstack_restore(struct thread *t, const stack_t *stack, uintptr_t sp);

/* What uc_stack has to be where rt_sigreturn(2) is called on k. */
stack_t altstack_of(const struct carrier *k);

#endif
