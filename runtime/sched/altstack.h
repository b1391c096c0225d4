/* SPDX-License-Identifier: MIT
 *
 * sigaltstack(2). The kernel has the signal stack of each carrier in place of the program's
 * alternate stacks. Our handler takes every signal first, and must not write on stacks of the
 * program. A program's alternate stack belongs to its thread, and gets the frames of the program's
 * own SA_ONSTACK handlers.
 */
#ifndef LISSOM_ALTSTACK_H
#define LISSOM_ALTSTACK_H

#include "sched/thread.h"

#include <ucontext.h>

/* Make the kernel deliver signals of this kernel thread, k, on k's signal stack. The stack that was
 * set before becomes t's. */
void altstack_begin(struct thread *t, struct carrier *k);

/* Restore k's signal stack. The program has replaced it by a system call that is not redirected,
 * and our handler runs on the new stack, which becomes t's. t: the thread that runs on k, or NULL.
 * Pre: all signals are blocked; `uc` is the frame's.
 *
 * This cannot wait. Once t is on its runtime stack, the kernel's next frame would overwrite what is
 * on the program's stack. The kernel refuses the call on the stack that it replaces, and ignores
 * uc_stack when a handler returns from there (Linux 6.18). So the call is made with the stack
 * pointer on k's signal stack. */
void altstack_take_back(struct thread *t, struct carrier *k, ucontext_t *uc);

/* Perform sigaltstack(2) for t. Returns an ACTION_*. */
long altstack_call(struct thread *t, struct user_registers *r);

/* Return the upper end of the frame of a handler with these flags, if t is interrupted with stack
 * pointer `sp`. *lowest: the end that the frame must not pass; 0: unknown. *saved: the stack for
 * uc_stack of that frame. Disarms an SS_AUTODISARM stack as the kernel does: call this once a
 * frame. */
uintptr_t altstack_for(struct thread *t, unsigned long flags, uintptr_t sp, uintptr_t *lowest,
                       stack_t *saved);

/* t returns from a handler to stack pointer `sp`: restore the alternate stack of its frame. */
void altstack_restore(struct thread *t, const stack_t *stack, uintptr_t sp);

/* Return the stack that uc_stack must contain when rt_sigreturn(2) is called on k. */
stack_t altstack_of(const struct carrier *k);

#endif
