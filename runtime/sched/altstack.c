/* SPDX-License-Identifier: MIT */
#include "sched/altstack.h"
#include "sched/frame.h"
#include "sched/signals.h"
#include "sched/user.h"

#include <errno.h>

#define AUTODISARM (1u << 31)
enum { MINIMUM = 2048 }; /* MINSIGSTKSZ of x86 */

static long set(const stack_t *new, stack_t *old)
{
    return prim_syscall3(SYS_sigaltstack, new, old, 0);
}

stack_t altstack_of(const struct carrier *k)
{
    return (stack_t){.ss_sp = k->signal_stack, .ss_size = SIGNAL_STACK, .ss_flags = 0};
}

void altstack_begin(struct thread *t, struct carrier *k)
{
    stack_t ours = altstack_of(k);
    if (set(&ours, &t->altstack))
        t->altstack = (stack_t){.ss_flags = SS_DISABLE};
}

void altstack_take_back(struct thread *t, struct carrier *k, ucontext_t *uc)
{
    stack_t ours = altstack_of(k);
    long call = SYS_sigaltstack;
    if (t)
        t->altstack = uc->uc_stack;
    uc->uc_stack = ours;
    __asm__ volatile("mov %%rsp, %%r12\n\t"
                     "mov %[top], %%rsp\n\t"
                     "syscall\n\t"
                     "mov %%r12, %%rsp"
                     : "+a"(call)
                     : [top] "r"((char *)k->signal_stack + SIGNAL_STACK), "D"(&ours), "S"(NULL)
                     : "r12", "rcx", "r11", "memory");
}

static bool is_on(const stack_t *s, uintptr_t sp)
{
    uintptr_t low = (uintptr_t)s->ss_sp;
    return !((unsigned)s->ss_flags & AUTODISARM) && s->ss_size && sp > low &&
           sp - low <= s->ss_size;
}

static int state_of(const stack_t *s, uintptr_t sp)
{
    return !s->ss_size ? SS_DISABLE : is_on(s, sp) ? SS_ONSTACK : 0;
}

/* Return whether s is large enough. The kernel's minimum depends on the vector state that the
 * process may use, so ask the kernel, with all signals blocked. */
static bool is_large_enough(const struct thread *t, const stack_t *s)
{
    stack_t ours = altstack_of(t->carrier);
    if (s->ss_size < MINIMUM)
        return false;
    if (s->ss_size >= SAVE_AREA)
        return true;
    uint64_t mask = signals_block_all();
    bool fits = set(s, NULL) == 0;
    set(&ours, NULL);
    signals_set_mask(mask);
    return fits;
}

static long change(struct thread *t, stack_t new, uintptr_t sp)
{
    int mode = (int)((unsigned)new.ss_flags & ~AUTODISARM);
    if (is_on(&t->altstack, sp))
        return -EPERM;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
        return -EINVAL;
    if (mode == SS_DISABLE) {
        new.ss_size = 0;
        new.ss_sp = NULL;
    } else if (!is_large_enough(t, &new)) {
        return -ENOMEM;
    }
    t->altstack = new;
    return 0;
}

/* First handle signals sent to t earlier on its old stack: the program may free that stack next.
 * They may be pending on t's own kernel thread. */
long altstack_call(struct thread *t, struct user_registers *r)
{
    carrier_migrate_home(t);
    if (signals_pending(t))
        return signals_leave(t, r, ACTION_RESTART);
    stack_t new = {0}, old = t->altstack;
    old.ss_flags =
        (int)(((unsigned)old.ss_flags & AUTODISARM) | (unsigned)state_of(&old, (uintptr_t)r->rsp));
    r->rax = r->rdi && user_copy(t, &new, (const void *)r->rdi, sizeof new) ? -EFAULT : 0;
    if (!r->rax && r->rdi)
        r->rax = change(t, new, (uintptr_t)r->rsp);
    if (!r->rax && r->rsi && user_copy(t, (void *)r->rsi, &old, sizeof old))
        r->rax = -EFAULT;
    return ACTION_RETURN;
}

uintptr_t altstack_for(struct thread *t, unsigned long flags, uintptr_t sp, uintptr_t *lowest,
                       stack_t *saved)
{
    stack_t *s = &t->altstack;
    bool on = is_on(s, sp), enters = (flags & SA_ONSTACK) && s->ss_size && !on;
    *saved = *s;
    *lowest = on || enters ? (uintptr_t)s->ss_sp : 0;
    if (enters)
        sp = (uintptr_t)s->ss_sp + s->ss_size;
    if ((unsigned)s->ss_flags & AUTODISARM)
        *s = (stack_t){.ss_flags = SS_DISABLE};
    return sp;
}

void altstack_restore(struct thread *t, const stack_t *stack, uintptr_t sp)
{
    if (__builtin_memcmp(&t->altstack, stack, sizeof *stack))
        change(t, *stack, sp);
}
