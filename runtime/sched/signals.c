/* SPDX-License-Identifier: MIT
 *
 * Every handler that the program installs is installed as `handler` here (rt_sigaction is one of the patched
 * sites), which knows three situations:
 *
 * 1. The carrier runs its home thread, outside of the runtime: the program's handler is called, with the program's
 *    mask, and with the instruction and stack pointers of the interrupted state translated from our code to the
 *    system call site, so that unwinding (cancellation, exceptions), siglongjmp and glibc's own checks work.
 * 2. The carrier is inside the runtime: the signal is kept in the carrier (one is enough, because all others are then
 *    blocked and wait in the kernel) and raised when the thread leaves the runtime; a wait is ended with EINTR.
 * 3. The carrier runs another thread than its home thread, or none: the signal is for the home thread, since the
 *    kernel chose its kernel thread. It is *forwarded*: stored in the thread, whose wait is ended, or which is called
 *    home if it runs somewhere, and raised there.
 *
 * A handler runs with the mask of its kernel thread changed, so a thread with a handler on its stack counts as pinned
 * (handler_depth).
 */
#include "sched/signals.h"
#include "futex/futex.h"
#include "spin/site.h"
#include "spin/spin.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

struct kernel_sigaction { /* as rt_sigaction(2) has it */
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
#define KERNEL_SA_RESTORER 0x04000000ul

/* Our doorbell, told from the program's by what is sent with it. SIGURG because programs do without it well: it is ignored
 * by default, hardly ever sent, and debuggers pass it on in silence (gdb does not even know SIGSTKFLT, and stops). */
enum { DOORBELL = SIGURG, SIGNALS = 64 };

static struct {
    uint32_t sequence; /* odd while being written: read without the lock by handlers */
    struct kernel_sigaction action;
} actions[SIGNALS + 1];
static struct lock actions_lock;
static const char doorbell_mark, sample_mark;

void lissom_call_on(void *stack, void (*f)(void *), void *argument);
void lissom_sigreturn(void);
extern const char lissom_at_entry_swapped[], lissom_at_entry_committed[], lissom_at_exit[], lissom_at_exit_end[],
    lissom_at_direct[], lissom_at_direct_end[], lissom_at_call[], lissom_at_call_made[], lissom_at_call_end[],
    lissom_at_done_committed[], lissom_at_raise[], lissom_at_raise_end[], lissom_at_raise_gone[], lissom_at_guarded[],
    lissom_at_guarded_end[], lissom_at_guarded_fault[], lissom_spin_entry[], lissom_at_spin_pushed[],
    lissom_at_spin_committed[], lissom_at_spin_exit[], lissom_at_spin_popped[], lissom_at_spin_raise[],
    lissom_at_spin_raised[], lissom_at_spin_end[], lissom_at_spin_unknown[], lissom_at_spin_unknown_popped[];

static uint64_t bit(int sig) { return 1ull << (sig - 1); }
/* Sent by the faulting instruction itself; blocking them would turn a guarded load's fault into death. */
#define SYNCHRONOUS \
    (bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGFPE) | bit(SIGTRAP) | bit(SIGSYS))
static bool is_fault(int sig, const siginfo_t *info) { return (SYNCHRONOUS & bit(sig)) && info->si_code > 0; }

static void set_mask(uint64_t mask) { prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8); }

static long kernel_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    return prim_syscall4(SYS_rt_sigaction, sig, new, old, 8);
}

/* --- the program's actions -------------------------------------------------------------------------------- */

static struct kernel_sigaction action_of(int sig)
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

static void set_action(int sig, const struct kernel_sigaction *a) /* under actions_lock */
{
    __atomic_store_n(&actions[sig].sequence, actions[sig].sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    actions[sig].action = *a;
    __atomic_store_n(&actions[sig].sequence, actions[sig].sequence + 1, __ATOMIC_RELEASE);
}

static bool is_ours_always(int sig) { return sig == SIGSEGV || sig == SIGBUS || sig == DOORBELL; }
static bool has_handler(const struct kernel_sigaction *a) { return (uintptr_t)a->handler > 1; }
/* Also without a handler of the program: faults of guarded loads; the doorbell even if the program ignores it. */
static bool wants_ours(int sig, const struct kernel_sigaction *a)
{
    return is_ours_always(sig) && !has_handler(a) && (sig == DOORBELL || a->handler == NULL);
}

static void handler(int sig, siginfo_t *info, void *context);

static void install(int sig, const struct kernel_sigaction *user)
{
    struct kernel_sigaction k = *user;
    k.handler = handler;
    /* All blocked until the handler knows its situation. RESETHAND is done by deliver. */
    k.flags = (user->flags & ~(unsigned long)(SA_RESETHAND | SA_NODEFER)) | SA_SIGINFO | KERNEL_SA_RESTORER;
    if (sig == DOORBELL && !has_handler(user))
        k.flags |= SA_RESTART; /* natively it would be ignored */
    k.restorer = lissom_sigreturn;
    k.mask = ~SYNCHRONOUS;
    kernel_action(sig, &k, NULL);
}

void signals_init(void)
{
    struct kernel_sigaction none = {.flags = 0};
    for (int sig = 1; sig <= SIGNALS; sig++) {
        struct kernel_sigaction a;
        if (kernel_action(sig, NULL, &a) == 0)
            actions[sig].action = a;
        if (wants_ours(sig, &a))
            install(sig, &none);
    }
}

void signals_after_fork(struct thread *t)
{
    sched.faults_blocked = t->faults_blocked;
    actions_lock.word = 0;
    if (t->home->deferred) {
        t->home->deferred = 0;
        set_mask(t->home->deferred_mask);
    }
    t->attention = 0;
    t->remote_state = 0;
    t->raised = 0;
}

void signals_mask_is(struct thread *t, uint64_t mask)
{
    bool blocked = mask & (bit(SIGSEGV) | bit(SIGBUS));
    t->own_mask = mask != sched.base_mask;
    if (blocked == t->faults_blocked)
        return;
    t->faults_blocked = blocked;
    __atomic_fetch_add(&sched.faults_blocked, blocked ? 1 : -1u, __ATOMIC_SEQ_CST);
}

/* Not the kernel's alone: a signal that has arrived in the runtime has left all blocked there, and the mask that counts, to be
 * told to the program and to be changed, is the one to go back to. */
long signals_sigprocmask(struct thread *t, struct user_registers *r)
{
    const uint64_t all = ~SYNCHRONOUS;
    uint64_t set = 0, old, new;
    r->rax = -EINVAL;
    if (r->r10 != 8 || (r->rsi && (r->rdi < SIG_BLOCK || r->rdi > SIG_SETMASK)))
        return ACTION_RETURN;
    r->rax = -EFAULT;
    if (r->rsi && lissom_guarded_copy(&set, (const void *)r->rsi, sizeof set))
        return ACTION_RETURN;
    carrier_go_home(t);
    prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8);
    struct carrier *k = t->home;
    bool arrived = k->deferred;
    if (arrived)
        old = k->deferred_mask;
    new = old;
    if (r->rsi)
        new = r->rdi == SIG_BLOCK ? old | set : r->rdi == SIG_UNBLOCK ? old & ~set : set;
    new &= ~(bit(SIGKILL) | bit(SIGSTOP));
    bool before = new & (bit(SIGSEGV) | bit(SIGBUS)); /* counted as long as it is so */
    if (before)
        signals_mask_is(t, new);
    if (arrived)
        k->deferred_mask = new;
    else
        set_mask(new);
    if (!before)
        signals_mask_is(t, new);
    if (!r->rdx || !lissom_guarded_copy((void *)r->rdx, &old, sizeof old))
        r->rax = 0;
    return ACTION_RETURN;
}

long signals_sigaction(struct user_registers *r)
{
    int sig = (int)r->rdi;
    struct kernel_sigaction new, old;
    if (r->r10 != 8 || sig < 1 || sig > SIGNALS || sig == SIGKILL || sig == SIGSTOP)
        return ACTION_DIRECT;
    if (r->rsi && lissom_guarded_copy(&new, (const void *)r->rsi, sizeof new)) {
        r->rax = -EFAULT;
        return ACTION_RETURN;
    }
    lock_take(&actions_lock);
    old = actions[sig].action;
    if (r->rsi) {
        new.mask &= ~(bit(SIGKILL) | bit(SIGSTOP));
        set_action(sig, &new);
        if (has_handler(&new) || wants_ours(sig, &new))
            install(sig, &new);
        else
            kernel_action(sig, &new, NULL);
    }
    lock_drop(&actions_lock);
    r->rax = r->rdx && lissom_guarded_copy((void *)r->rdx, &old, sizeof old) ? -EFAULT : 0;
    return ACTION_RETURN;
}

/* --- what the program sees of the interrupted state --------------------------------------------------------- */

struct view { /* of the interrupted state */
    greg_t rip, rsp, rax;
};

static bool within(uintptr_t ip, const char *from, const char *to)
{
    return ip >= (uintptr_t)from && ip < (uintptr_t)to;
}

/* In spin/enter.S: how far below the program's the stack pointer is; the return address into the site's stub is the word
 * RED_ZONE + 8 below. -1: not there. */
static long spin_entry_depth(uintptr_t ip)
{
    if (within(ip, lissom_spin_entry, lissom_at_spin_pushed) || ip == (uintptr_t)lissom_at_spin_popped ||
        ip == (uintptr_t)lissom_at_spin_unknown_popped)
        return 136;
    if (within(ip, lissom_at_spin_raise, lissom_at_spin_raised))
        return 192;
    return ip == (uintptr_t)lissom_at_spin_unknown || within(ip, lissom_at_spin_pushed, lissom_at_spin_committed) ||
                   within(ip, lissom_at_spin_exit, lissom_at_spin_popped) ||
                   within(ip, lissom_at_spin_raised, lissom_at_spin_end)
               ? 144
               : -1;
}

/* At a spin site all registers are the program's: the state becomes the one before the site's instruction, or behind it, and is
 * gone on with there. Post: false: it is not interrupted at a site. */
static bool spin_unwind(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    long depth = spin_entry_depth((uintptr_t)g[REG_RIP]), off;
    const struct spin_site *site;
    if (depth < 0) {
        site = spin_site_at((uintptr_t)g[REG_RIP]);
        if (!site)
            return false;
        g[REG_RIP] = (greg_t)spin_site_view(site, (uintptr_t)g[REG_RIP], &off);
        g[REG_RSP] += off;
        return true;
    }
    const greg_t *stack = (const greg_t *)g[REG_RSP]; /* [six registers,] [rcx,] return address */
    site = spin_site_at((uintptr_t)stack[depth / 8 - 17]);
    if (!site)
        return false;
    if (depth == 192) {
        static const uint8_t pushed[6] = {REG_R10, REG_RDX, REG_RSI, REG_RDI, REG_RAX, REG_R11};
        for (unsigned i = 0; i < 6; i++)
            g[pushed[i]] = stack[i];
    }
    if (depth > 136)
        g[REG_RCX] = stack[depth / 8 - 18];
    g[REG_RIP] = (greg_t)site->address;
    g[REG_RSP] += depth;
    return true;
}

/* Pre: outside of the runtime (in_runtime == 0). Post: the state as it would be without lissom. */
static struct view native_view(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    struct view v = {g[REG_RIP], g[REG_RSP], g[REG_RAX]};
    uintptr_t ip = (uintptr_t)v.rip;
    const struct patch_site *rcx = (const void *)g[REG_RCX], *r11 = (const void *)g[REG_R11];
    const uintptr_t *stack = (const uintptr_t *)v.rsp;
    if (!within(ip, (const char *)lissom_syscall_entry, lissom_at_raise_gone)) {
        uintptr_t native = patch_native_ip(ip);
        if (native)
            v.rip = (greg_t)native;
    } else if (within(ip, (const char *)lissom_syscall_entry, lissom_at_entry_swapped)) {
        v.rip = (greg_t)rcx->syscall;
    } else if (within(ip, lissom_at_entry_swapped, lissom_at_entry_committed) ||
               within(ip, lissom_at_direct, lissom_at_direct_end)) {
        v.rip = (greg_t)r11->syscall;
    } else if (within(ip, lissom_at_exit, lissom_at_exit_end)) {
        v.rip = (greg_t)r11->syscall + 2;
    } else if (within(ip, lissom_at_call, lissom_at_call_end)) {
        const struct patch_site *site = (const void *)stack[0];
        v.rip = (greg_t)site->syscall + (within(ip, lissom_at_call, lissom_at_call_made) ? 0 : 2);
        v.rsp += 8 + 128;
    } else if (within(ip, lissom_at_call_end, lissom_at_done_committed)) {
        v.rip = (greg_t)r11->syscall + 2;
    } else if (within(ip, lissom_at_raise, lissom_at_raise_end)) {
        const struct patch_site *site = (const void *)stack[0];
        v.rip = (greg_t)site->syscall + (stack[1] == (uintptr_t)lissom_syscall_entry ? 0 : 2);
        v.rsp += 64 + 128;
        v.rax = (greg_t)stack[2];
    } else if (within(ip, lissom_at_raise_end, lissom_at_raise_gone)) {
        v.rip = (greg_t)rcx->syscall + 2;
    }
    return v;
}

/* --- delivery ------------------------------------------------------------------------------------------------- */

static void default_action(int sig, const siginfo_t *info)
{
    struct kernel_sigaction dfl = {.flags = 0};
    kernel_action(sig, &dfl, NULL);
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
    set_mask(~SYNCHRONOUS);
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

/* Those that are queued by the kernel, each of them; of the others one at a time is pending. */
static bool is_queued(int sig) { return sig >= 32; }

static uint32_t find_raised(const struct thread *t, uint32_t from, int sig)
{
    while (from < t->raised && t->raise_info[from].si_signo != sig)
        from++;
    return from;
}

/* The siginfo that belongs to a signal which was sent again (raise_later). Of queued ones, others may stand before it: they take
 * the older ones' places one after the other. */
static void take_raised(struct thread *t, int sig, siginfo_t *info)
{
    uint32_t at = find_raised(t, 0, sig), next;
    if (at == t->raised)
        return;
    siginfo_t displaced = *info;
    *info = t->raise_info[at];
    for (; (next = find_raised(t, at + 1, sig)) < t->raised; at = next)
        t->raise_info[at] = t->raise_info[next];
    if (is_queued(sig) && displaced.si_code != SI_TKILL) {
        t->raise_info[at] = displaced;
        return;
    }
    t->raised--;
    memmove(&t->raise_info[at], &t->raise_info[at + 1], (t->raised - at) * sizeof displaced);
}

static void deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    struct kernel_sigaction a = action_of(sig);
    uint64_t mask;
    if (t)
        take_raised(t, sig, info);
    if (!has_handler(&a)) {
        if (a.handler == NULL)
            default_action(sig, info);
        return;
    }
    if (a.flags & SA_RESETHAND) {
        struct kernel_sigaction dfl = {.flags = 0};
        set_action(sig, &dfl);
        kernel_action(sig, &dfl, NULL);
    }
    greg_t *g = uc->uc_mcontext.gregs;
    spin_unwind(uc);
    struct view ours = {g[REG_RIP], g[REG_RSP], g[REG_RAX]}, theirs = native_view(uc);
    g[REG_RIP] = theirs.rip;
    g[REG_RSP] = theirs.rsp;
    g[REG_RAX] = theirs.rax;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    mask |= a.mask;
    if (!(a.flags & SA_NODEFER))
        mask |= bit(sig);
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

/* --- forwarding ------------------------------------------------------------------------------------------------ */

static void ring(struct carrier *k, const char *mark)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = DOORBELL;
    info.si_code = SI_QUEUE;
    info.si_pid = sched.pid;
    info.si_value.sival_ptr = (void *)mark;
    prim_syscall4(SYS_rt_tgsigqueueinfo, sched.pid, k->tid, DOORBELL, &info);
}

static bool is_doorbell(int sig, const siginfo_t *info)
{
    return sig == DOORBELL && info->si_code == SI_QUEUE &&
           (info->si_value.sival_ptr == &doorbell_mark || info->si_value.sival_ptr == &sample_mark);
}

void signals_preempt(struct carrier *k) { ring(k, &doorbell_mark); }
void signals_sample(struct carrier *k) { ring(k, &sample_mark); }
uint64_t signals_ours(void) { return bit(DOORBELL); }

/* Post: false: t has not dealt with an earlier one yet. Pre: the caller holds no lock and cannot be interrupted. */
static bool forward(struct thread *t, const siginfo_t *info)
{
    uint32_t empty = 0;
    if (!__atomic_compare_exchange_n(&t->remote_state, &empty, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    t->remote_info = *info;
    __atomic_store_n(&t->remote_state, 2, __ATOMIC_RELEASE);
    __atomic_store_n(&t->attention, 1, __ATOMIC_SEQ_CST);
    if (futex_interrupt(t))
        return true;
    struct carrier *k = __atomic_load_n(&t->carrier, __ATOMIC_ACQUIRE);
    if (k && __atomic_load_n(&k->current, __ATOMIC_RELAXED) == t)
        ring(k, &doorbell_mark);
    return true;
}

/* If the home thread has not dealt with an earlier signal yet, this one stays with k, where the thread comes to deal
 * with that one, and finds this. */
bool signals_forward(struct carrier *k)
{
    siginfo_t info = k->deferred_info;
    uint64_t mask = k->deferred_mask;
    if (!is_doorbell(info.si_signo, &info) && !forward(k->home_thread, &info))
        return false;
    __atomic_store_n(&k->deferred, 0, __ATOMIC_RELEASE);
    set_mask(mask);
    return true;
}

static void defer(struct carrier *k, const siginfo_t *info, ucontext_t *uc)
{
    const uint64_t all = ~SYNCHRONOUS;
    k->deferred_info = *info;
    memcpy(&k->deferred_mask, &uc->uc_sigmask, sizeof k->deferred_mask);
    memcpy(&uc->uc_sigmask, &all, sizeof all);
    __atomic_store_n(&k->deferred, 1, __ATOMIC_RELEASE);
}

/* On t's runtime stack, out of a handler on t's own: what another carrier wants of t, or t's carrier's home thread. */
static void answer(void *argument)
{
    struct thread *t = argument;
    if (__atomic_load_n(&t->remote_state, __ATOMIC_ACQUIRE) == 2)
        carrier_go_home(t);
    else
        slot_yield(t);
}

/* f on t's runtime stack; another thread may run on this carrier in between, with the mask it expects. */
static void in_runtime(struct thread *t, void (*f)(void *), const ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    t->in_runtime = 1;
    set_mask(mask);
    lissom_call_on(t->runtime_stack, f, t);
    set_mask(~SYNCHRONOUS);
    t->in_runtime = 0;
}

static void go_home(void *t) { carrier_go_home(t); }

/* A fault's handler runs at home too: its mask is the kernel thread's. */
static void leave_for_home(struct thread *t, const ucontext_t *uc) { in_runtime(t, go_home, uc); }

/* The same for a sample. */
static void answer_sample(void *argument)
{
    struct thread *t = argument;
    if (t->has_slot && (sched.observe_spinning || slots_anything_ready() || t->slot->overcommit))
        spin_sampled(t, t->sampled);
}

/* Blocked now, so it stays pending until switch.S goes back to raise_mask on the program's stack (or a
 * handler of ours to the program). The siginfo is not sent
 * with it, the kernel lets nobody forge SI_TKILL and the like: deliver puts it in. */
static void raise_later(struct thread *t, const siginfo_t *info)
{
    uint32_t at = find_raised(t, 0, info->si_signo); /* those of its kind that are there came later */
    if (at < RAISED && (at == t->raised || (is_queued(info->si_signo) && t->raised < RAISED))) {
        memmove(&t->raise_info[at + 1], &t->raise_info[at], (t->raised - at) * sizeof *info);
        t->raised++;
    }
    if (at < RAISED)
        t->raise_info[at] = *info;
    prim_syscall3(SYS_tgkill, sched.pid, t->carrier->tid, info->si_signo);
}

/* What arrived while the thread was in the runtime by way of a handler: it may not come there again by itself. The kernel
 * delivers it once our handler has returned, on the stack that the program has chosen (SA_ONSTACK), which ours need not run on. */
static void deliver_kept(struct thread *t)
{
    struct carrier *k = t->carrier;
    while (k->deferred && (k->home_thread != t || is_doorbell(k->deferred_info.si_signo, &k->deferred_info))) {
        t->in_runtime = 1;
        bool gone = signals_forward(k); /* with the mask from before: the next one may come at once */
        set_mask(~SYNCHRONOUS);
        t->in_runtime = 0;
        if (!gone)
            return;
    }
    if (!k->deferred)
        return;
    siginfo_t info = k->deferred_info;
    t->attention = 0;
    __atomic_store_n(&k->deferred, 0, __ATOMIC_RELEASE);
    raise_later(t, &info);
}

static void answer_doorbell(struct thread *t, const siginfo_t *info, ucontext_t *uc)
{
    if (info->si_value.sival_ptr == &sample_mark) {
        t->sampled = uc;
        in_runtime(t, answer_sample, uc);
    } else if (!thread_stays(t)) {
        in_runtime(t, answer, uc);
    } else {
        return;
    }
    for (;;) {
        if (t->carrier->home_thread != t && __atomic_load_n(&t->remote_state, __ATOMIC_ACQUIRE) == 2)
            leave_for_home(t, uc);
        deliver_kept(t);
        if (__atomic_load_n(&t->remote_state, __ATOMIC_ACQUIRE) != 2)
            return;
        if (t->carrier->home_thread == t)
            break;
    }
    siginfo_t remote = t->remote_info;
    t->attention = 0;
    __atomic_store_n(&t->remote_state, 0, __ATOMIC_RELEASE);
    raise_later(t, &remote);
}

static void handler(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    if (is_fault(sig, info) && within((uintptr_t)g[REG_RIP], lissom_at_guarded, lissom_at_guarded_end)) {
        g[REG_RIP] = (greg_t)lissom_at_guarded_fault;
        return;
    }
    if (sig == DOORBELL && !is_doorbell(sig, info)) { /* the program's, which ignores it unless it has a handler */
        struct kernel_sigaction a = action_of(sig);
        if (!has_handler(&a))
            return;
    }
    struct carrier *k = carrier_by_tid((int32_t)prim_syscall3(SYS_gettid, 0, 0, 0));
    struct thread *t = k ? k->current : NULL;
    if (!k || (t && !t->in_runtime)) {
        if (is_doorbell(sig, info)) {
            if (t)
                answer_doorbell(t, info, uc);
        } else if (k && k->home_thread != t && !is_fault(sig, info)) {
            t->in_runtime = 1;
            if (!forward(k->home_thread, info))
                defer(k, info, uc);
            t->in_runtime = 0;
        } else {
            if (k && k->home_thread != t)
                leave_for_home(t, uc);
            deliver(t, sig, info, uc);
        }
        return;
    }
    if (is_fault(sig, info)) { /* our own mistake: let it be seen */
        default_action(sig, info);
        return;
    }
    if (t && k->home_thread == t && !is_doorbell(sig, info))
        take_raised(t, sig, info); /* it was sent again, and has not come through this time either */
    defer(k, info, uc);
    count(signals_deferred);
    if (t) {
        uint32_t asleep = ASLEEP;
        __atomic_store_n(&t->attention, 1, __ATOMIC_SEQ_CST);
        __atomic_compare_exchange_n(&t->attach, &asleep, ATTACHED, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(&k->park, 1, __ATOMIC_SEQ_CST);
    }
}

/* --- leaving the runtime ---------------------------------------------------------------------------------------- */

bool signals_pending(const struct thread *t)
{
    const struct carrier *k = t->carrier;
    if (__atomic_load_n(&t->remote_state, __ATOMIC_ACQUIRE) == 2)
        return true;
    return k->deferred && k->home_thread == t && !is_doorbell(k->deferred_info.si_signo, &k->deferred_info);
}

bool signals_settle(struct thread *t)
{
    __atomic_store_n(&t->attention, 0, __ATOMIC_SEQ_CST);
    struct carrier *k = t->carrier;
    if (k->deferred && (k->home_thread != t || is_doorbell(k->deferred_info.si_signo, &k->deferred_info)))
        signals_forward(k);
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
    signals_settle(t);
    struct carrier *k = t->carrier;
    bool remote = __atomic_load_n(&t->remote_state, __ATOMIC_ACQUIRE) == 2;
    if (remote) {
        carrier_go_home(t);
        k = t->carrier;
    }
    bool local = k->deferred && k->home_thread == t;
    if (!remote && !local)
        return action;
    const uint64_t all = ~SYNCHRONOUS;
    prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &t->raise_mask, 8);
    /* The one that was forwarded is the older. Looked at again: all are blocked now, before one may just have come. */
    if (k->deferred) {
        if (!is_doorbell(k->deferred_info.si_signo, &k->deferred_info))
            raise_later(t, &k->deferred_info);
        t->raise_mask = k->deferred_mask;
        __atomic_store_n(&k->deferred, 0, __ATOMIC_RELEASE);
    }
    if (remote) {
        raise_later(t, &t->remote_info);
        __atomic_store_n(&t->remote_state, 0, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&t->attention, 0, __ATOMIC_SEQ_CST);
    action = raising(action);
    if (action == ACTION_RESTART)
        r->rax = t->nr;
    return action;
}

long signals_end_wait(struct thread *t, struct user_registers *r, bool timed)
{
    const siginfo_t *info = t->carrier->deferred && t->carrier->home_thread == t ? &t->carrier->deferred_info
                                                                               : &t->remote_info;
    struct kernel_sigaction a = action_of(info->si_signo);
    long action = !timed && (a.flags & SA_RESTART) ? ACTION_RESTART : ACTION_RETURN;
    long result = signals_leave(t, r, action);
    return result;
}

/* From switch.S: a signal came between the last look and leaving the runtime. */
long lissom_attend(struct user_registers *r, struct thread *t)
{
    return signals_leave(t, r, ACTION_RETURN);
}
