/* SPDX-License-Identifier: MIT
 *
 * The table of the program's signal actions. rt_sigaction writes it under a lock. Handlers read it
 * without: a sequence number is odd while an entry is written.
 */
#include "sched/actions.h"
#include "sched/mask.h"
#include "sched/signals.h"
#include "sched/user.h"

#include <errno.h>

#define KERNEL_SA_RESTORER 0x04000000ul

static struct {
    uint32_t sequence;
    struct kernel_sigaction action;
} actions[SIGNALS + 1];
static struct lock actions_lock;

void lissom_sigaction_restorer(void); /* switch.S */

static long kernel_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    return prim_syscall4(SYS_rt_sigaction, sig, new, old, 8);
}

struct kernel_sigaction action_of(int sig)
{
    struct kernel_sigaction a;
    uint32_t before;
    do {
        before = __atomic_load_n(&actions[sig].sequence, __ATOMIC_ACQUIRE);
        a = actions[sig].action;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while ((before & 1) || before != __atomic_load_n(&actions[sig].sequence, __ATOMIC_RELAXED));
    return a;
}

static void set_action(int sig, const struct kernel_sigaction *a) /* Pre: actions_lock. */
{
    __atomic_store_n(&actions[sig].sequence, actions[sig].sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    actions[sig].action = *a;
    __atomic_store_n(&actions[sig].sequence, actions[sig].sequence + 1, __ATOMIC_RELEASE);
}

bool action_has_handler(const struct kernel_sigaction *a) { return (uintptr_t)a->handler > 1; }

static int preempt_number = PREEMPT_QUIET;

int preempt_signal(void) { return __atomic_load_n(&preempt_number, __ATOMIC_RELAXED); }

/* Return whether the kernel has our handler even if the program has none, or ignores the signal:
 * the kernel never blocks these, although the program may. */
static bool is_ours(int sig) { return NEVER_BLOCKED & signal_bit(sig); }

static bool should_be_ours(int sig)
{
    return action_has_handler(&actions[sig].action) || is_ours(sig);
}

static void install(int sig, const struct kernel_sigaction *user)
{
    struct kernel_sigaction k = *user;
    k.handler = signals_handler;
    /* Block all signals until our handler knows its situation. It performs RESETHAND itself. */
    k.flags = (user->flags & ~(unsigned long)(SA_RESETHAND | SA_NODEFER)) | SA_SIGINFO |
              SA_ONSTACK | KERNEL_SA_RESTORER;
    if ((NEVER_BLOCKED & signal_bit(sig)) && !action_has_handler(user))
        k.flags |= SA_RESTART; /* the program may ignore or block the signal */
    k.restorer = lissom_sigaction_restorer;
    k.mask = ~SYNCHRONOUS;
    kernel_action(sig, &k, NULL);
}

static void leave_quiet_preempt(void) /* Pre: actions_lock, or at the start. */
{
    if (preempt_signal() == PREEMPT_COUNTED)
        return;
    install(PREEMPT_COUNTED, &actions[PREEMPT_COUNTED].action);
    __atomic_store_n(&preempt_number, PREEMPT_COUNTED, __ATOMIC_RELEASE);
}

void actions_init(void)
{
    struct kernel_sigaction none = {.flags = 0};
    for (int sig = 1; sig <= SIGNALS; sig++) {
        struct kernel_sigaction a;
        if (kernel_action(sig, NULL, &a))
            continue;
        actions[sig].action = a;
        /* Some handlers were installed before us: those of libpthread before glibc 2.34. */
        if (action_has_handler(&a))
            install(sig, &a);
        else if (is_ours(sig))
            install(sig, &none);
    }
    if (action_has_handler(&actions[PREEMPT_QUIET].action))
        leave_quiet_preempt();
}

/* Block all signals and take the lock: a handler that read an entry while this thread writes it
 * would wait for itself. Returns the previous mask. */
static uint64_t lock_actions(void)
{
    uint64_t mask = signals_block_all();
    lock_take(&actions_lock);
    return mask;
}

static void unlock_actions(uint64_t mask)
{
    lock_drop(&actions_lock);
    signals_set_mask(mask);
}

void preempt_leave_quiet(void)
{
    uint64_t mask = lock_actions();
    leave_quiet_preempt();
    unlock_actions(mask);
}

void actions_after_fork(bool cleared)
{
    const struct kernel_sigaction none = {.flags = 0};
    actions_lock.word = 0;
    for (int sig = 1; cleared && sig <= SIGNALS; sig++) {
        if (action_has_handler(&actions[sig].action))
            set_action(sig, &none);
        if (is_ours(sig))
            install(sig, &actions[sig].action);
    }
}

void actions_after_clearing(void)
{
    for (int sig = 1; sig <= SIGNALS; sig++) {
        struct kernel_sigaction a = action_of(sig);
        if (is_ours(sig) && (uintptr_t)a.handler == (uintptr_t)SIG_IGN)
            kernel_action(sig, &a, NULL);
    }
}

static bool ended;

/* Take over the action of `sig` if the program has set it by a system call that is not redirected.
 * Pre: actions_lock. */
static void look(int sig)
{
    struct kernel_sigaction now;
    if (ended || kernel_action(sig, NULL, &now) || now.handler == signals_handler)
        return;
    if (!action_has_handler(&now) && !should_be_ours(sig))
        return;
    if (sig == PREEMPT_QUIET && action_has_handler(&now))
        leave_quiet_preempt();
    set_action(sig, &now);
    if (should_be_ours(sig))
        install(sig, &now);
}

void actions_look(void)
{
    uint64_t mask = lock_actions();
    for (int sig = 1; sig <= SIGNALS; sig++)
        look(sig);
    unlock_actions(mask);
}

void actions_before_exec(void)
{
    for (int sig = 1; sig <= SIGNALS; sig++) {
        struct kernel_sigaction a = action_of(sig), now;
        if ((uintptr_t)a.handler == (uintptr_t)SIG_IGN && !kernel_action(sig, NULL, &now) &&
            now.handler == signals_handler)
            kernel_action(sig, &a, NULL);
    }
}

/* The pending preemption signals have been discarded. */
static void none_is_pending(struct thread *t)
{
    __atomic_store_n(&t->home->preempt_sent, false, __ATOMIC_SEQ_CST);
}

void actions_after_exec(void)
{
    actions_look();
    threads_each(none_is_pending);
}

long actions_of_child(struct user_registers *r)
{
    int sig = (int)r->rdi;
    struct kernel_sigaction now;
    if (r->rsi || !r->rdx || r->r10 != 8 || sig < 1 || sig > SIGNALS ||
        kernel_action(sig, NULL, &now) || now.handler != signals_handler)
        return ACTION_DIRECT;
    now = action_of(sig);
    r->rax = user_copy(lissom_self, (void *)r->rdx, &now, sizeof now);
    return ACTION_RETURN;
}

void actions_end(void)
{
    uint64_t mask = lock_actions();
    for (int sig = 1; sig <= SIGNALS; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            kernel_action(sig, &actions[sig].action, NULL);
    ended = true;
    unlock_actions(mask);
}

void action_default(int sig)
{
    struct kernel_sigaction dfl = {.flags = 0};
    kernel_action(sig, &dfl, NULL);
}

void action_reset(int sig)
{
    struct kernel_sigaction dfl = action_of(sig);
    dfl.handler = NULL; /* nothing else changes, as in the kernel */
    set_action(sig, &dfl);
    kernel_action(sig, &dfl, NULL);
}

long actions_call(struct user_registers *r)
{
    int sig = (int)r->rdi;
    struct kernel_sigaction new, old;
    if (r->r10 != 8 || sig < 1 || sig > SIGNALS || sig == SIGKILL || sig == SIGSTOP)
        return ACTION_DIRECT;
    if (r->rsi && user_copy(lissom_self, &new, (const void *)r->rsi, sizeof new)) {
        r->rax = -EFAULT;
        return ACTION_RETURN;
    }
    uint64_t mask = lock_actions();
    if (ended) {
        unlock_actions(mask);
        return ACTION_DIRECT;
    }
    look(sig);
    old = actions[sig].action;
    if (r->rsi) {
        new.mask &= ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
        set_action(sig, &new);
        if (sig == PREEMPT_QUIET && action_has_handler(&new))
            leave_quiet_preempt();
        if ((uintptr_t)new.handler == (uintptr_t)SIG_IGN || (!new.handler &&sig == SIGURG)) {
            mask_discard(sig);
            if ((PREEMPT_SIGNALS & signal_bit(sig)) && sig != preempt_signal())
                kernel_action(sig, &new, NULL); /* the kernel discards pending ones */
        }
        if (should_be_ours(sig))
            install(sig, &new);
        else
            kernel_action(sig, &new, NULL);
    }
    unlock_actions(mask);
    r->rax = r->rdx && user_copy(lissom_self, (void *)r->rdx, &old, sizeof old) ? -EFAULT : 0;
    return ACTION_RETURN;
}
