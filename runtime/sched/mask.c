/* SPDX-License-Identifier: MIT */
#include "sched/mask.h"
#include "sched/frame.h"
#include "sched/deferred.h"
#include "sched/signals.h"
#include "sched/user.h"
#include "sched/waitmask.h"

#include <errno.h>

/* --- the list --------------------------------------------------------------------------------- */

enum { LISTED = 4096 }; /* signals beyond that are lost */

/* A signal that the kernel let through and the program blocks. */
struct listed {
    struct kept info;
    int32_t tid; /* sent to this thread; 0: to the process */
    bool passed; /* sent to the process, and since then passed on to the thread by tgkill(2) */
};

static struct lock list_lock; /* taken with all signals blocked */
static struct listed list[LISTED];
static uint32_t count_listed;

static uint64_t lock_list(void)
{
    uint64_t mask = signals_block_all();
    lock_take(&list_lock);
    return mask;
}

static void unlock_list(uint64_t mask)
{
    lock_drop(&list_lock);
    signals_set_mask(mask);
}

static bool any_listed(void) { return __atomic_load_n(&count_listed, __ATOMIC_SEQ_CST); }

static void take_out(uint32_t i)
{
    uint32_t left = count_listed - 1;
    __builtin_memmove(&list[i], &list[i + 1], (left - i) * sizeof *list);
    __atomic_store_n(&count_listed, left, __ATOMIC_SEQ_CST);
}

/* Mark in si_errno (as SENT_AGAIN in deferred.c): the process sent the signal to itself, not to a
 * thread. */
enum { SENT_TO_PROCESS = 0x6c737370 };

/* The process has a seccomp filter, which may forbid the calls that make listed signals pending.
 * Those are lost, and no more signals are listed. */
static bool stopped;

/* Make the signals in `set` that are listed for t or for the process pending for t. Unblocked
 * signals arrive in our handler at once. */
static void take(struct thread *t, uint64_t set)
{
    if (!any_listed() || stopped)
        return;
    uint64_t mask = lock_list();
    for (uint32_t i = 0; i < count_listed;) {
        struct listed *l = &list[i];
        if (l->passed || (l->tid && l->tid != t->tid) || !(set & signal_bit(l->info.signo))) {
            i++;
            continue;
        }
        siginfo_t info = kept_unpack(&l->info);
        if (!l->tid)
            info.si_errno = SENT_TO_PROCESS;
        signal_to_self(t->tid, &info);
        take_out(i);
    }
    unlock_list(mask);
}

static bool does_not_block(const struct thread *t, int sig)
{
    uint64_t mask = __atomic_load_n(&t->has_call_mask, __ATOMIC_SEQ_CST)
                        ? t->call_mask
                        : __atomic_load_n(&t->mask, __ATOMIC_SEQ_CST) &
                              ~__atomic_load_n(&t->sigwaits, __ATOMIC_SEQ_CST);
    return !(mask & signal_bit(sig));
}

/* Pass each listed signal of the process on to a thread that does not block it. Pre: the lock. */
static void pass_on(void)
{
    for (uint32_t i = 0; i < count_listed; i++) {
        struct listed *l = &list[i];
        struct thread *t = l->tid ? NULL : threads_find(does_not_block, l->info.signo);
        if (!t)
            continue;
        l->tid = t->tid;
        l->passed = true;
        prim_syscall3(SYS_tgkill, sched.pid, t->tid, l->info.signo);
    }
}

static void add(const siginfo_t *info, int32_t tid)
{
    bool counted = info->si_signo >= 32; /* other signals: only one is pending at a time */
    for (uint32_t i = 0; i < count_listed && !counted; i++)
        if (list[i].info.signo == info->si_signo && list[i].tid == tid && !list[i].passed)
            return;
    if (count_listed == LISTED)
        return;
    struct listed *l = &list[count_listed];
    __builtin_memcpy(&l->info, info, sizeof l->info);
    l->tid = tid;
    l->passed = false;
    __atomic_store_n(&count_listed, count_listed + 1, __ATOMIC_SEQ_CST);
}

/* If pass_on sent `info` to thread `tid`, replace it by the original siginfo and remove the entry.
 * Returns true if so. */
static bool was_passed(int32_t tid, siginfo_t *info)
{
    bool found = false;
    if (info->si_code != SI_TKILL || info->si_pid != sched.pid || !any_listed())
        return false;
    uint64_t mask = lock_list();
    for (uint32_t i = 0; i < count_listed && !found; i++) {
        struct listed *l = &list[i];
        if (l->passed && l->tid == tid && l->info.signo == info->si_signo) {
            *info = kept_unpack(&l->info);
            take_out(i);
            found = true;
        }
    }
    unlock_list(mask);
    return found;
}

/* --- masks ------------------------------------------------------------------------------------ */

/* Return the signals that the kernel never blocks. Once the program handles SIGURG itself, the
 * kernel may block that. */
static uint64_t never_blocked(void)
{
    return preempt_signal() == PREEMPT_QUIET ? NEVER_BLOCKED
                                             : NEVER_BLOCKED & ~signal_bit(PREEMPT_QUIET);
}

uint64_t mask_set(struct thread *t, uint64_t mask)
{
    t->kernel_has_mask = false;
    __atomic_store_n(&t->sigwaits, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&t->mask, mask, __ATOMIC_SEQ_CST);
    __atomic_store_n(&t->has_call_mask, false, __ATOMIC_SEQ_CST);
    take(t, ~mask);
    return t->home->mask = mask & ~never_blocked();
}

/* Give the kernel t's whole mask. `set`: listed signals that become pending. `waits`: signals that
 * sigtimedwait(2) is about to wait for. `call_mask`: mask of a call that waits with its own, or
 * NULL. The last two are stored while the kernel blocks these signals: otherwise our handler would
 * pass a signal on to t again and again. */
static void give_kernel(struct thread *t, uint64_t set, uint64_t waits, const uint64_t *call_mask)
{
    uint64_t before = signals_block_all();
    t->kernel_has_mask = true;
    t->home->mask = t->mask;
    if (!t->home->closed) {
        __atomic_store_n(&t->sigwaits, waits, __ATOMIC_SEQ_CST);
        if (call_mask)
            t->call_mask = *call_mask;
        __atomic_store_n(&t->has_call_mask, call_mask, __ATOMIC_SEQ_CST);
    }
    take(t, set);
    signals_set_mask(t->home->closed ? before : t->mask);
}

void mask_give_kernel(struct thread *t, bool pending)
{
    if (pending || t->home->mask != t->mask)
        give_kernel(t, pending ? ~0ull : 0, 0, NULL);
}

void mask_take_back(struct thread *t)
{
    if (t->home->mask == (t->mask & ~never_blocked())) {
        mask_set(t, t->mask);
        return;
    }
    uint64_t before = signals_block_all();
    uint64_t mask = mask_set(t, t->mask);
    signals_set_mask(t->home->closed ? before : mask);
}

/* Handle signals that arrived before the call first, with the mask that let them through. If the
 * kernel alone changed the mask, the deferred queue would be sent again blocked, behind newer
 * signals. */
long signals_sigprocmask(struct thread *t, struct user_registers *r)
{
    uint64_t set = 0, old, new;
    r->rax = -EINVAL;
    if (r->r10 != 8 || (r->rsi && (r->rdi < SIG_BLOCK || r->rdi > SIG_SETMASK)))
        return ACTION_RETURN;
    r->rax = -EFAULT;
    if (r->rsi && user_copy(t, &set, (const void *)r->rsi, sizeof set))
        return ACTION_RETURN;
    old = new = t->mask;
    if (r->rsi) {
        carrier_migrate_home(t);
        /* A signal that the program blocks would be deferred meanwhile, and restart the call. */
        uint64_t before = signals_block_all();
        if (!deferred_empty(t->home)) {
            signals_set_mask(before);
            return signals_leave(t, r, ACTION_RESTART);
        }
        new = r->rdi == SIG_BLOCK ? old | set : r->rdi == SIG_UNBLOCK ? old & ~set : set;
        new &= ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
        signals_set_mask(mask_set(t, new));
    }
    if (!r->rdx || !user_copy(t, (void *)r->rdx, &old, sizeof old))
        r->rax = 0;
    return ACTION_RETURN;
}

/* --- calls that wait -------------------------------------------------------------------------- */

void mask_before_wait(struct thread *t, const struct user_registers *r, bool waits)
{
    uint64_t set;
    /* the kernel begins the wait and applies its mask in one step */
    if (waitmask_of_call(t, r, &set))
        give_kernel(t, ~set, 0, &set);
    else if (t->home->mask == t->mask)
        return;
    else if (t->nr == SYS_rt_sigtimedwait && r->r10 == sizeof set &&
             !user_copy(t, &set, (const void *)r->rdi, sizeof set))
        give_kernel(t, set, set & never_blocked(), NULL);
    else if (waits) /* signals that t blocks must not end the call */
        give_kernel(t, 0, 0, NULL);
}

uint64_t mask_give_again(struct thread *t)
{
    t->kernel_has_mask = true;
    t->home->mask = t->mask;
    if (t->nr == SYS_rt_sigtimedwait || t->nr == t->mask_call)
        /* signals that the call does not take are listed again afterwards */
        take(t, t->mask);
    return t->mask;
}

void mask_after_wait(struct thread *t, struct user_registers *r)
{
    siginfo_t info;
    if (t->nr != SYS_rt_sigtimedwait || r->rax <= 0 || !r->rsi ||
        !(NEVER_BLOCKED & signal_bit((int)r->rax)) ||
        user_copy(t, &info, (const void *)r->rsi, sizeof info))
        return;
    if (info.si_errno == SENT_TO_PROCESS)
        info.si_errno = 0;
    else if (!was_passed(t->tid, &info))
        return;
    user_copy(t, (void *)r->rsi, &info, sizeof info);
}

long mask_pending(struct thread *t, struct user_registers *r)
{
    uint64_t pending = 0;
    if ((unsigned long)r->rsi > sizeof pending)
        return ACTION_DIRECT; /* the kernel refuses it */
    carrier_migrate_home(t);
    r->rax = prim_syscall3(SYS_rt_sigpending, &pending, sizeof pending, 0);
    uint64_t mask = lock_list();
    for (uint32_t i = 0; i < count_listed; i++)
        if (!list[i].tid || list[i].tid == t->tid)
            pending |= signal_bit(list[i].info.signo);
    unlock_list(mask);
    pending &= t->mask;
    if (!r->rax && user_copy(t, (void *)r->rdi, &pending, (size_t)r->rsi))
        r->rax = -EFAULT;
    return ACTION_RETURN;
}

bool signals_took_preempt(struct thread *t, const struct user_registers *r)
{
    siginfo_t info;
    if (r->rax != PREEMPT_QUIET && r->rax != PREEMPT_COUNTED)
        return false;
    if (user_copy(t, &info, (const void *)r->rsi, sizeof info) ||
        !is_preempt_signal((int)r->rax, &info))
        return false;
    __atomic_store_n(&t->home->preempt_sent, false, __ATOMIC_SEQ_CST);
    return true;
}

long mask_sigqueue(struct thread *t, struct user_registers *r)
{
    siginfo_t info;
    int sig = (int)r->rsi;
    if ((int32_t)r->rdi != sched.pid || sig < 1 || sig > SIGNALS ||
        !(never_blocked() & signal_bit(sig)) ||
        user_copy(t, &info, (const void *)r->rdx, sizeof info))
        return ACTION_DIRECT;
    info.si_errno = SENT_TO_PROCESS;
    r->rax = prim_syscall3(SYS_rt_sigqueueinfo, r->rdi, sig, &info);
    return ACTION_RETURN;
}

bool mask_is_for_thread(siginfo_t *info)
{
    if (info->si_errno == SENT_TO_PROCESS && (NEVER_BLOCKED & signal_bit(info->si_signo))) {
        info->si_errno = 0;
        return false;
    }
    return info->si_code == SI_TKILL || (info->si_code == SI_QUEUE && info->si_pid == sched.pid);
}

/* --- from the handler ------------------------------------------------------------------------- */

/* Let the kernel block the signal from now on, and send it again: the runtime does not need it. */
static void give_kernel_signal(struct carrier *k, const siginfo_t *info, bool for_thread,
                               ucontext_t *uc)
{
    uint64_t bit = signal_bit(info->si_signo);
    k->mask |= bit;
    frame_set_mask(uc, frame_mask(uc) | bit);
    if (for_thread)
        signal_to_self(k->tid, info);
    else if (prim_syscall3(SYS_rt_sigqueueinfo, sched.pid, info->si_signo, info))
        /* the sender in its siginfo is this process */
        prim_syscall3(SYS_kill, sched.pid, info->si_signo, 0);
}

bool mask_blocks(const struct thread *t, int sig) { return !stopped && t->mask & signal_bit(sig); }

bool mask_holds(struct carrier *k, siginfo_t *info, bool for_thread, ucontext_t *uc)
{
    struct thread *h = k->home_thread;
    if (h->ended || stopped)
        return false;
    if (was_passed(k->tid, info))
        for_thread = false;
    /* Handle a signal that has ended a call with a mask of its own. But another may have ended the
     * call, whose mask may block this one. */
    uint64_t blocked = k->current == h ? h->mask & waitmask_in_force(h, uc) : h->mask;
    if (!(blocked & signal_bit(info->si_signo)))
        return false;
    if (!(never_blocked() & signal_bit(info->si_signo))) {
        give_kernel_signal(k, info, for_thread, uc);
        return true;
    }
    uint64_t mask = lock_list();
    add(info, for_thread ? k->tid : 0);
    pass_on();
    unlock_list(mask);
    return true;
}

/* --- ends ------------------------------------------------------------------------------------- */

void mask_thread_ends(struct thread *t, bool exits)
{
    if (exits)
        signals_block_all(); /* for good: a signal before exit(2) would restart the call */
    else
        take(t, ~t->mask);
    uint64_t mask = lock_list();
    /* nothing is passed on to it any more */
    __atomic_store_n(&t->mask, ~0ull, __ATOMIC_SEQ_CST);
    t->sigwaits = 0;
    t->has_call_mask = false;
    for (uint32_t i = 0; i < count_listed;) {
        if (list[i].tid != t->tid) {
            i++;
        } else if (list[i].passed) {
            list[i].tid = 0;
            list[i++].passed = false;
        } else {
            siginfo_t info = kept_unpack(&list[i].info);
            if (!exits && !stopped)
                signal_to_self(t->tid, &info);
            take_out(i);
        }
    }
    pass_on();
    unlock_list(mask);
}

void mask_all_left(void)
{
    for (uint32_t i = 0; i < count_listed && !stopped; i++)
        prim_syscall3(SYS_kill, sched.pid, list[i].info.signo, 0);
}

void mask_stop(void) { stopped = true; }

void mask_discard(int sig)
{
    if (!any_listed())
        return;
    uint64_t mask = lock_list();
    for (uint32_t i = 0; i < count_listed;) {
        if (list[i].info.signo == sig)
            take_out(i);
        else
            i++;
    }
    unlock_list(mask);
}

void mask_after_fork(void)
{
    list_lock.word = 0;
    count_listed = 0;
}
