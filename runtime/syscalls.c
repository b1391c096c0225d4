/* SPDX-License-Identifier: MIT
 *
 * Entry of an intercepted system call: run the handlers that calls.c lists for its number, before
 * the call, in place of it, and after it.
 */
#include "calls.h"
#include "attributes.h"
#include "clone.h"
#include "events/events.h"
#include "futex/futex.h"
#include "lissom.h"
#include "omp/loops.h"
#include "sched/actions.h"
#include "sched/mask.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slots.h"
#include "sched/waitmask.h"
#include "fastpath.h"

#include <sys/mman.h>

/* --- new objects ------------------------------------------------------------------------------ */

/* The dynamic loader maps an object's segments and then closes its file, before any of the object's
 * code runs. The first mapping has the length of the whole object. If segments need more than page
 * alignment, it is made inside a larger anonymous reservation, whose ends are then unmapped. */
static struct {
    uintptr_t reserved, reserved_end;
    uintptr_t base, end;
    bool executable;
} mapping;

static void note_mapping(uintptr_t at, const struct user_registers *r)
{
    uintptr_t end = at + (((uintptr_t)r->rsi + 4095) & ~4095ul);
    bool fixed = r->r10 & MAP_FIXED, file = (int)r->r8 >= 0;
    if (!fixed && !file) {
        mapping.reserved = at;
        mapping.reserved_end = end;
        return;
    }
    if (!file)
        return;
    if (!fixed || (at >= mapping.reserved && end <= mapping.reserved_end)) {
        mapping.base = at;
        mapping.end = end;
        mapping.executable = false;
        mapping.reserved = mapping.reserved_end = 0;
    }
    if (at >= mapping.base && at < mapping.end && (r->rdx & PROT_EXEC))
        mapping.executable = true;
}

static long rtld_call(struct thread *t, struct user_registers *r)
{
    switch (r->rax) {
    case SYS_mmap: {
        long p = prim_syscall6(SYS_mmap, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
        if (p >= 0 || p < -4095)
            note_mapping((uintptr_t)p, r);
        r->rax = p;
        return ACTION_RETURN;
    }
    case SYS_munmap:
        r->rax = lissom_object_munmap((uintptr_t)r->rdi, (size_t)r->rsi);
        return ACTION_RETURN;
    default: /* close */
        if (mapping.executable) {
            mapping.executable = false;
            lissom_object_mapped(mapping.base, mapping.end - mapping.base, (int)r->rdi);
        }
        /* before any code of the object runs */
        return giving_up() ? release_call(t, r) : ACTION_DIRECT;
    }
}

/* --- the entry -------------------------------------------------------------------------------- */

static long descriptor_call(struct thread *t, struct user_registers *r)
{
    if (r->rax == SYS_close_range)
        fastpath_forget_range((uint32_t)r->rdi, (uint32_t)r->rsi);
    else
        fastpath_forget((uint32_t)(r->rax == SYS_close ? r->rdi : r->rsi));
    if (events_guard_descriptor(r))
        return ACTION_RETURN;
    return r->rax == SYS_close && t->site->loader ? rtld_call(t, r) : ACTION_DIRECT;
}

/* Let t make a call that waits in the kernel, without a slot. */
static long kernel_waits(struct thread *t, struct user_registers *r)
{
    mask_before_wait(t, r, true);
    /* lets signals_took_preempt distinguish a preemption signal from one of the program */
    if (r->rax == SYS_rt_sigtimedwait && !r->rsi)
        r->rsi = (long)&t->taken;
    return ACTION_CALL;
}

static long blocking_call(struct thread *t, struct user_registers *r)
{
    if (!sched.has_made_threads) {
        /* no thread wants the slot, and only t could create one that does */
        mask_before_wait(t, r, true);
        return ACTION_DIRECT;
    }
    bool done = fastpath_call(t, r), never_waits = !done && fastpath_likely(r);
    if ((done || never_waits) && slot_ready_count(t->slot) && slot_over_slice(t))
        slot_yield(t);
    if (done)
        return ACTION_RETURN;
    if (!never_waits && fastpath_for_events(r) && r->r10 && threads_exceed_slots()) {
        long action = events_wait(t, r);
        if (action != EVENTS_NOT)
            return action;
    }
    if (!never_waits || t->carrier != t->home)
        thread_learn(t, true);
    carrier_migrate_home(t);
    if (never_waits || !fastpath_may_block(r)) {
        mask_before_wait(t, r, false);
        return ACTION_DIRECT;
    }
    slot_release(t);
    return kernel_waits(t, r);
}

static long by_kind(struct thread *t, struct user_registers *r, enum call_kind kind)
{
    switch (kind) {
    case CALL_ANYWHERE: return rtld_call(t, r); /* only the loader's calls come here */
    case CALL_DESCRIPTORS: return descriptor_call(t, r);
    case CALL_BLOCKS: return blocking_call(t, r);
    case CALL_HOME: call_at_home(t); break;
    case CALL_HERE: break;
    }
    call_function *function = call_function_of(r->rax);
    return function ? function(t, r) : ACTION_DIRECT;
}

__attribute__((noinline)) static long call(struct user_registers *r, struct thread *t, long nr)
{
    long action;
    if (t->ended) { /* thread_exit has run, and a signal has made t begin exit(2) again */
        t->pending_work = 0;
        return ACTION_DIRECT;
    }
    if (t->kernel_has_mask)
        mask_take_back(t);
    futex_call_done(t, r); /* of a wait that a handler has jumped out of */
    if (t->pending_work && signals_notify_home(t))
        return signals_leave(t, r, ACTION_RESTART);
    if (t->site == &lissom_return_site)
        return signals_return(t, r);
    if (giving_up())
        return t->site == &lissom_omp_site ? ACTION_RETURN : release_call(t, r);
    enum call_kind kind = call_kind_of(nr);
    if (kind == CALL_BLOCKS)
        waitmask_begins(t, nr);
    /* A signal has interrupted t between releasing its slot and the call. If t queued for a slot
     * first, signals that keep coming would interrupt it there each time, and it would never make
     * the call. */
    if (!t->has_slot && kind == CALL_BLOCKS)
        return kernel_waits(t, r);
    if (!t->has_slot && nr != SYS_exit)
        slot_acquire(t);
    if (__atomic_load_n(&t->to_be_pinned, __ATOMIC_RELAXED)) {
        t->to_be_pinned = false;
        attributes_were_set(t);
        thread_look_at_class(t);
    }
    if (carrier_is_reserved(t))
        slot_yield(t);
    action = t->site == &lissom_omp_site ? loops_call(t, r) : by_kind(t, r, kind);
    if (t->pending_work && action == ACTION_RETURN)
        action = signals_leave(t, r, action);
    return action;
}

/* Return whether nothing is to be done before t's call, or in its place. */
static bool is_plain(const struct thread *t)
{
    return t->has_slot && !t->pending_work && !t->kernel_has_mask && !t->kernel_wait &&
           !t->foreign_wait && !__atomic_load_n(&t->to_be_pinned, __ATOMIC_RELAXED) &&
           t->site != &lissom_omp_site && !giving_up() && !carrier_is_reserved(t);
}

/* Called by switch.S on t's runtime stack. Returns an ACTION_*. */
long lissom_syscall(struct user_registers *r, struct thread *t)
{
    long nr = r->rax;
    if (clone_is_shared_child(t)) {
        if (clone_is_exec(nr))
            actions_before_exec();
        return nr == SYS_rt_sigaction ? actions_of_child(r) : ACTION_DIRECT;
    }
    t->nr = nr;
    if (nr == SYS_futex && is_plain(t)) {
        long action = futex_call(t, r);
        return t->pending_work && action == ACTION_RETURN ? signals_leave(t, r, action) : action;
    }
    return call(r, t, nr);
}

/* Called by switch.S after an ACTION_CALL. Returns an ACTION_*. */
long lissom_syscall_done(struct user_registers *r, struct thread *t)
{
    futex_call_done(t, r);
    if (clone_is_exec(t->nr))
        actions_after_exec();
    if (t->nr == SYS_rt_sigtimedwait && signals_took_preempt(t, r)) {
        r->rax = t->nr;
        return ACTION_CALL;
    }
    mask_after_wait(t, r);
    if (t->kernel_has_mask)
        mask_take_back(t);
    if (r->rsi == (long)&t->taken)
        r->rsi = 0;
    if (!t->has_slot && !giving_up())
        slot_acquire(t);
    return t->pending_work ? signals_leave(t, r, ACTION_RETURN) : ACTION_RETURN;
}
