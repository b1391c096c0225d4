/* SPDX-License-Identifier: MIT
 *
 * Every handler that the program installs is installed as `signals_handler` here (rt_sigaction is one of the patched
 * sites), which calls the program's at once if the signal's thread runs outside of the runtime, and keeps it in the carrier's
 * inbox otherwise; leaving the runtime, the thread sends what was kept to itself again. docs/signals.md.
 *
 * A handler runs with the mask of its kernel thread changed, so a thread with a handler on its stack counts as pinned
 * (handler_depth).
 */
#include "sched/signals.h"
#include "sched/ext.h"
#include "sched/inbox.h"
#include "sched/view.h"
#include "spin/site.h"
#include "spin/spin.h"

#include <errno.h>
#include <string.h>

void lissom_call_on(void *stack, void (*f)(void *), void *argument);

static bool is_fault(int sig, const siginfo_t *info) { return (SYNCHRONOUS & signal_bit(sig)) && info->si_code > 0; }

static void set_mask(uint64_t mask) { prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8); }

static uint64_t mask_of(const ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    return mask;
}

static void set_mask_of(ucontext_t *uc, uint64_t mask) { memcpy(&uc->uc_sigmask, &mask, sizeof mask); }

uint64_t signals_ours(void) { return signal_bit(DOORBELL); }
void signals_preempt(struct carrier *k) { doorbell_ring(k, &doorbell_mark); }
void signals_sample(struct thread *t) { doorbell_ring_at(t, &sample_mark); }
void signals_end_slice(struct thread *t) { doorbell_ring_at(t, &slice_mark); }

void signals_step_back(struct thread *t)
{
    __atomic_store_n(&t->told_to_step_back, true, __ATOMIC_RELAXED);
    doorbell_ring_at(t, &slice_mark);
}

void signals_after_fork(struct thread *t)
{
    sched.faults_blocked = t->faults_blocked;
    actions_after_fork();
    if (t->home->closed)
        set_mask(t->home->closed_mask);
    inbox_drop(t->home);
    t->attention = 0;
}

void signals_mask_is(struct thread *t, uint64_t mask)
{
    bool blocked = mask & (signal_bit(SIGSEGV) | signal_bit(SIGBUS));
    t->own_mask = mask != sched.base_mask;
    if (blocked == t->faults_blocked)
        return;
    t->faults_blocked = blocked;
    __atomic_fetch_add(&sched.faults_blocked, blocked ? 1 : -1u, __ATOMIC_SEQ_CST);
}

/* Here and not by the kernel alone: what arrived before the call is handled first, with the mask that let it through. The inbox would
 * otherwise be sent again blocked, behind newer signals. */
long signals_sigprocmask(struct thread *t, struct user_registers *r)
{
    const uint64_t all = INBOX_ALL;
    uint64_t set = 0, old, new;
    r->rax = -EINVAL;
    if (r->r10 != 8 || (r->rsi && (r->rdi < SIG_BLOCK || r->rdi > SIG_SETMASK)))
        return ACTION_RETURN;
    r->rax = -EFAULT;
    if (r->rsi && lissom_guarded_copy(&set, (const void *)r->rsi, sizeof set))
        return ACTION_RETURN;
    carrier_go_home(t);
    prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8);
    if (!inbox_empty(t->home)) {
        set_mask(old);
        return signals_leave(t, r, ACTION_RESTART);
    }
    new = old;
    if (r->rsi)
        new = r->rdi == SIG_BLOCK ? old | set : r->rdi == SIG_UNBLOCK ? old & ~set : set;
    new &= ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
    bool before = new & (signal_bit(SIGSEGV) | signal_bit(SIGBUS)); /* counted as long as it is so */
    if (before)
        signals_mask_is(t, new);
    set_mask(new);
    if (!before)
        signals_mask_is(t, new);
    if (!r->rdx || !lissom_guarded_copy((void *)r->rdx, &old, sizeof old))
        r->rax = 0;
    return ACTION_RETURN;
}

/* --- delivery ------------------------------------------------------------------------------------------------- */

static void default_action(int sig, const siginfo_t *info)
{
    action_default(sig);
    if (!is_fault(sig, info)) /* a fault comes again by itself */
        prim_syscall3(SYS_tgkill, sched.pid, prim_syscall3(SYS_gettid, 0, 0, 0), sig);
}

/* The handler may have interrupted a call that is made without a slot and counted somewhere, and make calls itself:
 * what belongs to the interrupted call is put aside. If the handler jumps away, the slot is acquired at the next call,
 * and the counts stay too high, which costs wakers a system call. */
static void call_handler(struct thread *t, const struct kernel_sigaction *a, uint64_t mask, int sig, siginfo_t *info,
                         ucontext_t *uc)
{
    uintptr_t kernel_wait = t->kernel_wait;
    bool foreign_wait = t->foreign_wait, had_slot = t->has_slot;
    t->kernel_wait = 0;
    t->foreign_wait = false;
    t->handler_depth++;
    bool blocked = t->faults_blocked, own_mask = t->own_mask;
    signals_mask_is(t, mask);
    set_mask(mask);
    a->handler(sig, info, uc);
    set_mask(INBOX_ALL);
    signals_mask_is(t, blocked ? ~0ull : 0);
    t->own_mask = own_mask;
    t->handler_depth--;
    t->kernel_wait = kernel_wait;
    t->foreign_wait = foreign_wait;
    if (!had_slot && t->has_slot) {
        t->in_runtime = 1;
        slot_release(t);
        t->in_runtime = 0;
    }
}

static void deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    struct kernel_sigaction a = action_of(sig);
    if (!action_has_handler(&a)) {
        if (a.handler == NULL)
            default_action(sig, info);
        return;
    }
    if (a.flags & SA_RESETHAND)
        action_reset(sig);
    greg_t *g = uc->uc_mcontext.gregs;
    view_leave_spin_site(uc);
    struct view ours = {g[REG_RIP], g[REG_RSP], g[REG_RAX]}, theirs = view_native(uc);
    g[REG_RIP] = theirs.rip;
    g[REG_RSP] = theirs.rsp;
    g[REG_RAX] = theirs.rax;
    uint64_t mask = mask_of(uc) | a.mask;
    if (!(a.flags & SA_NODEFER))
        mask |= signal_bit(sig);
    if (!t) {
        set_mask(mask);
        a.handler(sig, info, uc);
    } else {
        call_handler(t, &a, mask, sig, info, uc);
    }
    if (g[REG_RIP] == theirs.rip && g[REG_RSP] == theirs.rsp) {
        g[REG_RIP] = ours.rip;
        g[REG_RSP] = ours.rsp;
        if (g[REG_RAX] == theirs.rax)
            g[REG_RAX] = ours.rax;
    }
}

/* --- into the runtime from a handler ------------------------------------------------------------------------- */

/* f on t's runtime stack; another thread may run on this carrier in between, with the mask it expects, and t may come back on
 * another carrier: it leaves the handler with that one's mask. A thread that may move has the same mask everywhere. */
static void in_runtime(struct thread *t, void (*f)(void *), ucontext_t *uc)
{
    struct carrier *k = t->carrier;
    uint64_t own = k->closed ? k->closed_mask : mask_of(uc);
    t->in_runtime = 1;
    set_mask(mask_of(uc));
    lissom_call_on(t->runtime_stack, f, t);
    set_mask(INBOX_ALL);
    t->in_runtime = 0;
    set_mask_of(uc, t->carrier->closed ? INBOX_CLOSED : own);
}

static void go_home(void *t) { carrier_go_home(t); }

/* What another carrier wants of t, or t's carrier's home thread. */
static void answer(void *argument)
{
    struct thread *t = argument;
    if (!inbox_empty(t->home))
        carrier_go_home(t);
    else if (t->has_slot)
        slot_yield(t);
}

/* The kernel keeps one doorbell pending, so a sample may stand for somebody who wants the carrier too, for a slot that has been closed, or for a slice that is over. */
static void answer_sample(void *argument)
{
    struct thread *t = argument;
    if (t->sampled && t->has_slot && (sched.observe_spinning || slots_anything_ready() || t->slot->overcommit))
        spin_sampled(t, t->sampled);
    bool extra = __atomic_exchange_n(&t->told_to_step_back, false, __ATOMIC_RELAXED);
    if (!t->has_slot || (extra && !carrier_is_reserved(t) && slot_step_back(t)))
        return;
    if (carrier_is_reserved(t) || slot_over_slice(t))
        slot_yield(t);
}

/* t tells of what arrived on its carrier. Outside of the runtime, so it holds no lock. */
static void tell(struct thread *t)
{
    t->in_runtime = 1;
    inbox_tell(t->carrier);
    t->in_runtime = 0;
}

/* What was kept while the thread was in the runtime by way of a handler: it may not come there again by itself. The kernel
 * delivers it once our handler has returned, on the stack that the program has chosen (SA_ONSTACK), which ours need not run on. */
static void send_kept(struct thread *t, ucontext_t *uc)
{
    struct carrier *home = t->home;
    for (;;) {
        if (t->carrier->untold && t->carrier != home)
            tell(t);
        if (inbox_empty(home))
            return;
        if (t->carrier == home)
            break;
        in_runtime(t, go_home, uc);
    }
    uint64_t mask = home->closed ? home->closed_mask : mask_of(uc);
    inbox_send_again(home, mask);
    set_mask_of(uc, mask);
    t->attention = 0;
}

/* A debugger's breakpoint is where t goes on. The debugger may have stopped this kernel thread at it already, and have it go on behind it: another one that takes t over would stop there
 * once more. So t is not given away here. Who wants it rings again, in a tick, when the kernel thread has gone on. Sites of ours are jumps; a program's own int3 costs it that tick. */
static bool at_breakpoint(const ucontext_t *uc)
{
    enum { INT3 = 0xcc };
    uint8_t code;
    return lissom_guarded_copy(&code, (const void *)uc->uc_mcontext.gregs[REG_RIP], 1) == 0 && code == INT3;
}

static void answer_doorbell(struct thread *t, const siginfo_t *info, ucontext_t *uc)
{
    const void *mark = info->si_value.sival_ptr;
    bool stays = thread_stays(t), may_leave = stays || !at_breakpoint(uc);
    if (may_leave && mark != &doorbell_mark) {
        t->sampled = mark == &sample_mark ? uc : NULL;
        in_runtime(t, answer_sample, uc);
    } else if (may_leave && !stays) {
        in_runtime(t, answer, uc);
    }
    send_kept(t, uc);
}

/* A fault's handler runs at home too: its mask is the kernel thread's. */
static void deliver_fault(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    if (t && t->carrier != t->home)
        in_runtime(t, go_home, uc);
    if (t)
        send_kept(t, uc);
    deliver(t, sig, info, uc);
}

/* t, in the runtime, is to look before it leaves it, and not to sleep on. */
static void alert(struct thread *t, ucontext_t *uc)
{
    uint32_t asleep = ASLEEP, parked = PARKED;
    __atomic_store_n(&t->attention, 1, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(&t->attach, &asleep, ATTACHED, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    /* It may be about to make the call, after its last look at attention. */
    if (__atomic_compare_exchange_n(&t->attach, &parked, ATTACHED, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ext_park(false, t->carrier->tid);
    view_no_event_sleep(uc);
}

void signals_handler(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    bool fault = is_fault(sig, info), bell = is_doorbell(sig, info);
    if (fault && view_guarded_fault(uc))
        return;
    if (sig == DOORBELL && !bell) { /* the program's, which ignores it unless it has a handler */
        struct kernel_sigaction a = action_of(sig);
        if (!action_has_handler(&a))
            return;
    }
    struct carrier *k = carrier_by_tid((int32_t)prim_syscall3(SYS_gettid, 0, 0, 0));
    struct thread *t = k ? k->current : NULL;
    bool inside = k && (!t || t->in_runtime);
    if (bell) {
        if (t && !inside)
            answer_doorbell(t, info, uc);
        else if (t && (info->si_value.sival_ptr == &doorbell_mark || carrier_is_reserved(t)))
            alert(t, uc);
        return;
    }
    if (fault) {
        if (inside)
            default_action(sig, info); /* our own mistake: let it be seen */
        else
            deliver_fault(t, sig, info, uc);
        return;
    }
    if (k)
        inbox_in_turn(k, info);
    if (!k || (!inside && k->home_thread == t && inbox_empty(k))) {
        deliver(t, sig, info, uc);
        return;
    }
    inbox_keep(k, info, uc);
    count(signals_deferred);
    k->untold = true; /* also if t is its home thread: it may be about to leave for a queue */
    if (!t)
        __atomic_store_n(&k->park, 1, __ATOMIC_SEQ_CST);
    else if (inside || k->home_thread == t)
        alert(t, uc);
    else
        tell(t);
}

/* --- leaving the runtime ---------------------------------------------------------------------------------------- */

bool signals_pending(const struct thread *t) { return !inbox_empty(t->home); }

bool signals_settle(struct thread *t)
{
    __atomic_store_n(&t->attention, 0, __ATOMIC_SEQ_CST);
    if (t->carrier->untold && t->carrier != t->home)
        inbox_tell(t->carrier);
    return signals_pending(t);
}

static long raising(long action)
{
    switch (action) {
    case ACTION_RETURN: return ACTION_RAISE;
    case ACTION_CALL: return ACTION_RAISE_CALL;
    default: return ACTION_RESTART;
    }
}

long signals_leave(struct thread *t, struct user_registers *r, long action)
{
    if (!signals_settle(t)) {
        /* The doorbell may have rung for that. If something comes meanwhile, switch.S sees attention. */
        if (t->has_slot && carrier_is_reserved(t))
            slot_yield(t);
        return action;
    }
    carrier_go_home(t);
    struct carrier *k = t->home;
    const uint64_t all = INBOX_ALL;
    prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &t->raise_mask, 8);
    if (k->closed)
        t->raise_mask = k->closed_mask;
    inbox_send_again(k, t->raise_mask);
    __atomic_store_n(&t->attention, 0, __ATOMIC_SEQ_CST);
    action = raising(action);
    if (action == ACTION_RESTART)
        r->rax = t->nr;
    return action;
}

long signals_end_wait(struct thread *t, struct user_registers *r, bool timed)
{
    struct kernel_sigaction a = action_of(inbox_first(t->home));
    return signals_leave(t, r, !timed && (a.flags & SA_RESTART) ? ACTION_RESTART : ACTION_RETURN);
}

/* From switch.S: a signal came between the last look and leaving the runtime. */
long lissom_attend(struct user_registers *r, struct thread *t)
{
    return signals_leave(t, r, ACTION_RETURN);
}
