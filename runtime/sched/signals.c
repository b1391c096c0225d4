/* SPDX-License-Identifier: MIT
 *
 * Signals. Read docs/design/signals.md first.
 *
 * For each handler that the program installs, the kernel gets `signals_handler` (rt_sigaction is
 * redirected). The kernel runs it on the carrier's signal stack, whatever stack the interrupted
 * code uses. It returns to another state than the one it interrupted. Either to the program's
 * handler, whose frame is pushed where the kernel would have pushed it (enter_handler). Or to the
 * runtime, on the thread's runtime stack, with the interrupted state in its save area (divert). So
 * nothing stays on a signal stack, and no thread is switched to or from on one.
 */
#include "sched/signals.h"
#include "sched/altstack.h"
#include "sched/contention.h"
#include "sched/ext.h"
#include "sched/frame.h"
#include "sched/identity.h"
#include "sched/hooks.h"
#include "sched/deferred.h"
#include "sched/mask.h"
#include "sched/release.h"
#include "sched/slices.h"
#include "sched/turns.h"
#include "sched/user.h"
#include "sched/waitmask.h"

#include <errno.h>
#include <string.h>

static bool is_fault(int sig, const siginfo_t *info)
{
    return (SYNCHRONOUS & signal_bit(sig)) && info->si_code > 0;
}

void signals_preempt(struct carrier *k) { preempt_carrier(k, &work_mark); }
void signals_scan(struct thread *t) { preempt_thread(t, &scan_mark); }
void signals_end_slice(struct thread *t) { preempt_thread(t, &slice_mark); }

void signals_step_back(struct thread *t)
{
    __atomic_store_n(&t->asked_to_step_back, true, __ATOMIC_RELAXED);
    preempt_thread(t, &slice_mark);
}

void signals_after_fork(struct thread *t)
{
    mask_after_fork();
    actions_after_fork(t->clone_clears);
    identity_after_fork(t);
    deferred_drop(t->home);
    t->home->had_tiles = false;
    t->pending_work = 0;
}

/* --- the program's handlers ------------------------------------------------------------------- */

void __restore_rt(void); /* switch.S: the program's handlers return to it */
void lissom_diverted(void);
/* Make rt_sigreturn(2) from `uc`. Pre: all signals are blocked, and in_runtime is 0. */
_Noreturn void lissom_resume(const ucontext_t *uc);

enum { RED_ZONE_BYTES = 128 };

static long own_tid(void) { return prim_syscall3(SYS_gettid, 0, 0, 0); }
/* Not by sched.pid: that is the parent's in a child that shares our memory or has just been
 * forked. */
static void send_to_self(int sig) { prim_syscall3(SYS_tgkill, prim_pid(), own_tid(), sig); }

static void default_action(int sig, const siginfo_t *info)
{
    action_default(sig);
    /* other faults happen again by themselves */
    if ((!is_fault(sig, info) || sig == SIGTRAP || sig == SIGSYS) &&
        prim_syscall4(SYS_rt_tgsigqueueinfo, prim_pid(), own_tid(), sig, info))
        send_to_self(sig); /* too many are pending */
}

static uint64_t handler_mask(struct thread *t, const struct kernel_sigaction *a, int sig,
                             const ucontext_t *uc)
{
    return waitmask_of_handler(t, uc) | a->mask | (a->flags & SA_NODEFER ? 0 : signal_bit(sig));
}

static void see(ucontext_t *uc, const struct view *v)
{
    greg_t *g = uc->uc_mcontext.gregs;
    g[REG_RIP] = v->rip;
    g[REG_RSP] = v->rsp;
    g[REG_RAX] = v->rax;
}

static struct view now_at(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    return (struct view){g[REG_RIP], g[REG_RSP], g[REG_RAX]};
}

/* The handler has returned with `uc`: restore our registers where it has not changed its view. */
static void see_ours_again(ucontext_t *uc, const struct view *ours, const struct view *theirs)
{
    struct view now = now_at(uc), then = *ours;
    if (now.rip != theirs->rip || now.rsp != theirs->rsp)
        return;
    if (now.rax != theirs->rax)
        then.rax = now.rax;
    see(uc, &then);
}

/* The thread has left the runtime while the program's handler ran. */
void signals_return_native(uintptr_t context)
{
    struct signal_frame *f = frame_around(context);
    struct frame_note *note = frame_note(f);
    if (note)
        see_ours_again(frame_context(f), &note->ours, &note->theirs);
}

/* Kill the program by SIGSEGV when our handler returns. */
static void die(ucontext_t *uc)
{
    action_default(SIGSEGV);
    frame_set_mask(uc, frame_mask(uc) & ~signal_bit(SIGSEGV));
    send_to_self(SIGSEGV);
}

/* Push the frame of the program's handler for `sig`, and make `uc` enter the handler. Returns false
 * if there is no room for the frame. Pre: t is at home and outside of the runtime; `uc` is its
 * state. */
static bool enter_handler(struct thread *t, const struct kernel_sigaction *a, int sig,
                          const siginfo_t *info, ucontext_t *uc)
{
    on_interrupt(uc);
    struct frame_note note = {.ours = now_at(uc),
                              .theirs = view_native(uc),
                              .kernel_wait = t->kernel_wait,
                              .nr = t->nr,
                              .foreign_wait = t->foreign_wait,
                              .has_slot = t->has_slot,
                              .kernel_has_mask = t->kernel_has_mask};
    /* Our own code, if interrupted, has pushed below the program's red zone, and has no red
     * zone. */
    uintptr_t sp = (uintptr_t)note.ours.rsp -
                   (note.ours.rsp == note.theirs.rsp ? RED_ZONE_BYTES : 0),
              lowest;
    uint64_t mask = handler_mask(t, a, sig, uc), kernel = frame_mask(uc);
    stack_t ours = uc->uc_stack;
    see(uc, &note.theirs);
    sp = altstack_for(t, a->flags, sp, &lowest, &uc->uc_stack);
    frame_set_mask(uc, t->mask);
    struct signal_frame *f = frame_push(sp, lowest, uc, info, &note, __restore_rt);
    uc->uc_stack = ours;
    frame_set_mask(uc, kernel);
    if (!f) {
        see(uc, &note.ours);
        return false;
    }
    frame_redirect(uc, (uintptr_t)a->handler, (uintptr_t)f, (uintptr_t)sig,
                   (uintptr_t)frame_info(f), (uintptr_t)frame_context(f));
    frame_set_mask(uc, mask_set(t, mask));
    /* The interrupted call may be made without a slot and be counted, and the handler may make
     * calls itself. If it jumps away, the slot is acquired at the next call. The counts then stay
     * too high, which costs wakers a system call. */
    t->kernel_wait = 0;
    t->foreign_wait = false;
    return true;
}

/* Call the program's handler as a function. The kernel has put the frame where it would natively:
 * the kernel thread is not ours, or the program has replaced its signal stack. */
static void call_handler(struct thread *t, const struct kernel_sigaction *a, int sig,
                         siginfo_t *info, ucontext_t *uc)
{
    bool before = t && t->in_called_handler;
    uint64_t mask = handler_mask(t, a, sig, uc);
    on_interrupt(uc);
    struct view ours = now_at(uc), theirs = view_native(uc);
    see(uc, &theirs);
    if (t) {
        t->in_called_handler = true;
        frame_set_mask(uc, t->mask);
        mask = mask_set(t, mask);
    }
    signals_set_mask(mask);
    a->handler(sig, info, uc);
    signals_set_mask(DEFERRED_ALL);
    if (t) { /* the frame's mask is restored, whatever the handler has set */
        t->in_called_handler = before;
        frame_set_mask(uc, mask_set(t, frame_mask(uc)));
    }
    see_ours_again(uc, &ours, &theirs);
}

static bool on_signal_stack(const struct carrier *k, uintptr_t sp)
{
    return sp - (uintptr_t)k->signal_stack < SIGNAL_STACK;
}

/* Deliver a signal to the program. t: the thread that runs on its own kernel thread, this one;
 * NULL: the kernel thread is not ours. */
static void deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    struct kernel_sigaction a = action_of(sig);
    char here;
    if (!action_has_handler(&a)) {
        if (a.handler == NULL || is_fault(sig, info))
            default_action(sig, info);
        return;
    }
    if (a.flags & SA_RESETHAND)
        action_reset(sig);
    if (!t || !(on_signal_stack(t->home, (uintptr_t)&here) || t->in_runtime)) {
        call_handler(t, &a, sig, info, uc);
        return;
    }
    if (enter_handler(t, &a, sig, info, uc))
        return;
    /* As in the kernel: without room for the frame, deliver SIGSEGV, which may have a stack of its
     * own. */
    siginfo_t no_stack = {.si_signo = SIGSEGV, .si_code = SI_KERNEL};
    a = action_of(SIGSEGV);
    if (sig == SIGSEGV || !action_has_handler(&a) || (t->mask & signal_bit(SIGSEGV)) ||
        !enter_handler(t, &a, SIGSEGV, &no_stack, uc))
        die(uc);
}

/* Restore the state of the call that the handler interrupted. */
static void resume_call(struct thread *t, const struct frame_note *note)
{
    t->kernel_wait = note->kernel_wait;
    t->foreign_wait = note->foreign_wait;
    if (!note->has_slot && t->has_slot)
        slot_release(t);
    t->nr = note->nr;
}

/* The program's handler has returned to __restore_rt, and from there to the runtime. The kernel
 * takes the frame, as natively. But the mask and the stack in it must be those of this kernel
 * thread, and nothing may come in between. */
long signals_return(struct thread *t, struct user_registers *r)
{
    /* Change a copy: natively, the program's frame is only read. If it cannot be read, let the
     * kernel find the same. */
    struct signal_frame *f = frame_load(t, frame_around((uintptr_t)r->rsp));
    if (!f)
        return ACTION_DIRECT;
    ucontext_t *uc = frame_context(f);
    carrier_migrate_home(t);
    uint64_t mask = signals_block_all();
    if (!deferred_empty(t->home)) {
        signals_set_mask(mask);
        return signals_leave(t, r, ACTION_RESTART);
    }
    struct frame_note *note = frame_note(f);
    altstack_restore(t, &uc->uc_stack, (uintptr_t)uc->uc_mcontext.gregs[REG_RSP]);
    uc->uc_stack = altstack_of(t->home);
    if (note) {
        see_ours_again(uc, &note->ours, &note->theirs);
        resume_call(t, note);
    }
    mask = frame_mask(uc) & ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
    frame_set_mask(uc, mask_set(t, mask));
    if (note && note->kernel_has_mask) /* the interrupted call may still have to be made */
        frame_set_mask(uc, mask_give_again(t));
    release_by(t, uc);
    t->in_runtime = 0;
    lissom_resume(uc);
}

/* --- into the runtime from a handler ---------------------------------------------------------- */

/* Divert t, which was interrupted outside of the runtime: after our handler, it runs f on its
 * runtime stack, with its current mask. After f it resumes where it was interrupted, perhaps on
 * another carrier. */
static void divert(struct thread *t, void (*f)(struct thread *), const siginfo_t *info,
                   ucontext_t *uc)
{
    struct signal_frame *saved = frame_save(t->save_area, uc, info);
    t->saved = saved;
    t->in_runtime = 1;
    frame_redirect(uc, (uintptr_t)lissom_diverted, (uintptr_t)t->runtime_stack, (uintptr_t)t,
                   (uintptr_t)f, 0);
    uc->uc_mcontext.gregs[REG_RBX] = (greg_t)frame_context(saved); /* for the unwinder */
}

/* t is about to resume the state that it was diverted from: send again the signals that were
 * deferred meanwhile, since t may never enter the runtime by itself. Returns with all signals
 * blocked. */
static void settle_saved(struct thread *t, ucontext_t *uc)
{
    struct carrier *home = t->home;
    uint64_t mask, open; /* mask: in force here; open: the one if the carrier were not closed */
    for (;;) {
        mask = signals_block_all();
        open = t->carrier->closed ? t->carrier->mask : mask;
        if (t->carrier->unnotified && t->carrier != home)
            deferred_notify(t->carrier);
        if (deferred_empty(home))
            break;
        if (t->carrier == home) {
            deferred_send_again(home, open);
            t->pending_work = 0;
            break;
        }
        signals_set_mask(mask);
        carrier_migrate_home(t);
    }
    frame_set_mask(uc, t->carrier->closed ? deferred_closed_mask() : open);
    uc->uc_stack = altstack_of(t->carrier);
    frame_make_room(t->carrier, uc);
}

/* Run f for a diverted thread, then resume it. Called by switch.S. */
_Noreturn void lissom_divert(struct thread *t, void (*f)(struct thread *));
_Noreturn void lissom_divert(struct thread *t, void (*f)(struct thread *))
{
    ucontext_t *uc = frame_context(t->saved);
    siginfo_t *info = frame_info(t->saved);
    f(t);
    if (t->delivers)
        carrier_migrate_home(t);
    settle_saved(t, uc);
    if (t->delivers) {
        t->delivers = false;
        signals_set_mask(DEFERRED_ALL); /* the program's stack may fault */
        deliver(t, info->si_signo, info, uc);
        signals_set_mask(~0ull);
        if (!deferred_empty(t->home))
            deferred_send_again(t->home, frame_mask(uc));
    } else {
        release_by(t, uc);
    }
    t->in_runtime = 0;
    lissom_resume(uc);
}

/* Another thread wants t's carrier, or t to come home. */
static void answer(struct thread *t)
{
    if (!deferred_empty(t->home))
        carrier_migrate_home(t);
    else if (t->has_slot)
        slot_yield(t);
}

/* Handle all requests: the kernel keeps one preemption signal pending. So a scan may have replaced
 * one for the carrier, a closed slot or the end of a slice. looked: t->scan_works is current. */
static void end_slice_of(struct thread *t, bool looked)
{
    bool extra = __atomic_exchange_n(&t->asked_to_step_back, false, __ATOMIC_RELAXED);
    if (!t->has_slot || (extra && !carrier_is_reserved(t) && slot_step_back(t)))
        return;
    bool over = slot_over_slice(t);
    if (over)
        slices_used_up(t, looked);
    if (over || carrier_is_reserved(t))
        slot_yield(t);
    else if (slices_make_way(t->slot))
        slot_make_way(t);
}

static void end_slice(struct thread *t) { end_slice_of(t, false); }

static void sample(struct thread *t)
{
    bool wanted =
        sched.observe_spinning || slots_anything_ready() || t->slot->overcommit || contended(tsc());
    bool looked = wanted && t->has_slot && on_scan(t, frame_context(t->saved));
    end_slice_of(t, looked);
}

static void nothing(struct thread *t) { (void)t; }

/* Notify the home thread of t's carrier of a signal that arrived there. t is outside of the
 * runtime, so it holds no lock. */
static void notify_home(struct thread *t)
{
    t->in_runtime = 1;
    deferred_notify(t->carrier);
    t->in_runtime = 0;
}

/* Return whether t would resume at a debugger's breakpoint. The debugger may have stopped this
 * kernel thread there already, and another one that ran t would stop once more. So t is not moved
 * now; the preemption is repeated in a tick. Our sites are jumps; a program's own int3 costs that
 * tick. */
static bool at_breakpoint(const ucontext_t *uc)
{
    enum { INT3 = 0xcc };
    uint8_t code;
    return lissom_guarded_copy(&code, (const void *)uc->uc_mcontext.gregs[REG_RIP], 1) == 0 &&
           code == INT3;
}

static void answer_preempt(struct thread *t, const siginfo_t *info, ucontext_t *uc)
{
    const void *mark = info->si_value.sival_ptr;
    if (giving_up()) {
        divert(t, release_slot, info, uc);
        return;
    }
    bool stays = thread_stays(t), may_leave = stays || !at_breakpoint(uc);
    if (may_leave && mark != &work_mark)
        divert(t, mark == &scan_mark ? sample : end_slice, info, uc);
    else if (may_leave && !stays)
        divert(t, answer, info, uc);
    else if (!deferred_empty(t->home) || (t->carrier->unnotified && t->carrier != t->home))
        divert(t, nothing, info, uc);
}

/* Deliver a signal in t, which was interrupted. A handler runs at home: its mask is that of the
 * kernel thread. */
static void deliver_at_home(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    if (t && (t->carrier != t->home || !deferred_empty(t->home))) {
        divert(t, carrier_migrate_home, info, uc);
        t->delivers = true;
    } else {
        deliver(t, sig, info, uc);
    }
}

/* Return whether the kernel sent the signal to whichever thread used the process's CPU time: that
 * is the interrupted one, on any kernel thread. */
static bool is_for_running(int sig, const siginfo_t *info)
{
    return (sig == SIGPROF || sig == SIGVTALRM) && info->si_code == SI_KERNEL;
}

/* A preemption signal was delivered just before this one, so t is about to be diverted. Returns
 * true if t will then go home and handle this signal as well. */
static bool deliver_after_divert(struct thread *t, const siginfo_t *info, const ucontext_t *uc)
{
    if ((uintptr_t)uc->uc_mcontext.gregs[REG_RIP] != (uintptr_t)lissom_diverted || t->delivers)
        return false;
    __builtin_memcpy(frame_info(t->saved), info, FRAME_SIGINFO);
    t->delivers = true;
    return true;
}

/* Make t, which is in the runtime, check pending_work before it leaves, and not sleep on. */
static void alert(struct thread *t, ucontext_t *uc)
{
    uint32_t asleep = ASLEEP, parked = PARKED;
    __atomic_store_n(&t->pending_work, 1, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(&t->attach, &asleep, ATTACHED, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_RELAXED);
    /* t may be about to call ext_park, after its last check of pending_work: make that return at
     * once. */
    if (__atomic_compare_exchange_n(&t->attach, &parked, ATTACHED, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED))
        ext_park(false, t->carrier->tid);
    if (__atomic_load_n(&sched.naps, __ATOMIC_RELAXED))
        turns_end();
    view_no_event_sleep(uc);
}

/* Return whether the program ignores `sig`, although the kernel has our handler for it. */
static bool is_ignored(int sig)
{
    struct kernel_sigaction a = action_of(sig);
    return (NEVER_BLOCKED & signal_bit(sig)) && !action_has_handler(&a) &&
           (sig == PREEMPT_QUIET || a.handler);
}

/* --- our handler ------------------------------------------------------------------------------ */

/* Our handler has interrupted itself. The kernel does not block faults for it, since a guarded load
 * may cause one. A signal sent by kill(2) is handled when the outer handler has returned. */
static void interrupted_ourselves(int sig, const siginfo_t *info, ucontext_t *uc)
{
    if (is_fault(sig, info)) {
        default_action(sig, info); /* our own bug: make it visible */
        return;
    }
    prim_syscall4(SYS_rt_tgsigqueueinfo, prim_pid(), own_tid(), sig, info);
    frame_set_mask(uc, frame_mask(uc) | signal_bit(sig));
}

void signals_handler(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    bool fault = is_fault(sig, info), bell = is_preempt_signal(sig, info);
    if (fault && view_guarded_fault(uc))
        return;
    struct carrier *k = carrier_by_tid((int32_t)prim_syscall3(SYS_gettid, 0, 0, 0));
    if (k && on_signal_stack(k, (uintptr_t)uc->uc_mcontext.gregs[REG_RSP])) {
        interrupted_ourselves(sig, info, uc);
        return;
    }
    if (k && !on_signal_stack(k, (uintptr_t)__builtin_frame_address(0)))
        altstack_take_back(k->current, k, uc);
    struct thread *t = k ? k->current : NULL;
    bool inside = k && (!t || t->in_runtime);
    if (bell) {
        if (k)
            __atomic_store_n(&k->preempt_sent, false, __ATOMIC_SEQ_CST);
        if (t && !inside && !t->kernel_has_mask)
            answer_preempt(t, info, uc);
        else if (t && (info->si_value.sival_ptr == &work_mark || carrier_is_reserved(t)))
            alert(t, uc);
        return;
    }
    if (fault) {
        /* our own bug: make it visible; or, as the kernel does, if the program blocks the fault */
        if (inside || (t && mask_blocks(t, sig)))
            default_action(sig, info);
        else
            deliver_at_home(t, sig, info, uc);
        return;
    }
    if (NEVER_BLOCKED & signal_bit(sig)) {
        bool for_thread = mask_is_for_thread(info);
        if (k)
            deferred_in_turn(k, info);
        if ((k && mask_holds(k, info, for_thread, uc)) || is_ignored(sig))
            return;
    }
    if (t && t != k->home_thread && is_for_running(sig, info) &&
        !(t->home->mask & signal_bit(sig))) {
        if (!inside) {
            deliver_at_home(t, sig, info, uc);
            return;
        }
        if (deliver_after_divert(t, info, uc))
            return;
    }
    if (k && !(NEVER_BLOCKED & signal_bit(sig)))
        deferred_in_turn(k, info);
    if (!k || (!inside && k->home_thread == t && deferred_empty(k))) {
        deliver(t, sig, info, uc);
        return;
    }
    deferred_keep(k, info, uc);
    count(signals_deferred);
    /* also if t is the home thread: it may be about to leave for a queue */
    k->unnotified = true;
    if (!t)
        __atomic_store_n(&k->park, 1, __ATOMIC_SEQ_CST);
    else if (inside || k->home_thread == t)
        alert(t, uc);
    else
        notify_home(t);
}

/* --- leaving the runtime ---------------------------------------------------------------------- */

bool signals_pending(const struct thread *t) { return !deferred_empty(t->home); }

bool signals_notify_home(struct thread *t)
{
    __atomic_store_n(&t->pending_work, 0, __ATOMIC_SEQ_CST);
    if (t->carrier->unnotified && t->carrier != t->home)
        deferred_notify(t->carrier);
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
    if (!signals_notify_home(t)) {
        /* The preemption signal may have come for that. If another comes meanwhile, switch.S sees
         * pending_work. */
        if (t->has_slot && carrier_is_reserved(t))
            slot_yield(t);
        return action;
    }
    carrier_migrate_home(t);
    struct carrier *k = t->home;
    /* signals that are sent again must not arrive before the thread has left the runtime */
    t->raise_mask = signals_block_all();
    if (k->closed)
        t->raise_mask = k->mask;
    deferred_send_again(k, t->raise_mask);
    __atomic_store_n(&t->pending_work, 0, __ATOMIC_SEQ_CST);
    action = raising(action);
    if (action == ACTION_RESTART)
        r->rax = t->nr;
    return action;
}

long signals_end_wait(struct thread *t, struct user_registers *r, bool timed)
{
    struct kernel_sigaction a = action_of(deferred_first(t->home));
    return signals_leave(t, r, !timed && (a.flags & SA_RESTART) ? ACTION_RESTART : ACTION_RETURN);
}

/* A signal came between the last check and leaving the runtime. Called by switch.S. */
long lissom_attend(struct user_registers *r, struct thread *t)
{
    return signals_leave(t, r, ACTION_RETURN);
}
