/* SPDX-License-Identifier: MIT */
#include "attributes.h"
#include "visible.h"
#include "events/events.h"
#include "sched/bind.h"
#include "sched/hooks.h"
#include "sched/identity.h"
#include "sched/user.h"

#include <errno.h>

static void pin(struct thread *t, struct thread *other)
{
    if (other == t)
        thread_pin(t, LISSOM_PIN_affinity);
    else
        __atomic_store_n(&other->to_be_pinned, true, __ATOMIC_RELAXED);
}

static void pin_by_mask(struct thread *t)
{
    bool first = !t->pinned || t->pinned_by_mask || t->pin_reason == LISSOM_PIN_blocking;
    thread_pin(t, LISSOM_PIN_affinity);
    t->pinned_by_mask = first;
}

static bool is_of(const struct thread *t, long tid) { return !tid || (int32_t)tid == t->tid; }

static bool is_in_process(int32_t tid) { return prim_syscall3(SYS_tgkill, sched.pid, tid, 0) == 0; }

/* Pin thread `tid`, or t if that is 0, for attributes of its own. A thread that is not registered
 * yet either finds the note when it registers, or is registered once the note is made. */
static void pin_for_attributes(struct thread *t, int32_t tid)
{
    struct thread *of = tid ? thread_by_tid(tid) : t;
    if (of == t) {
        identity_changes(t, LISSOM_PIN_affinity);
        return;
    }
    if (!of && is_in_process(tid)) {
        identity_expect(tid);
        of = thread_by_tid(tid);
    }
    if (of) {
        of->own_attributes = true;
        pin(t, of);
    }
}

long attributes_set_priority(struct thread *t, struct user_registers *r)
{
    if (r->rdi == 0 /* PRIO_PROCESS */)
        pin_for_attributes(t, (int32_t)r->rsi);
    return ACTION_DIRECT;
}

long attributes_set_io_priority(struct thread *t, struct user_registers *r)
{
    if (r->rdi == 1 /* IOPRIO_WHO_PROCESS */)
        pin_for_attributes(t, (int32_t)r->rsi);
    return ACTION_DIRECT;
}

long attributes_leave_namespace(struct thread *t, struct user_registers *r)
{
    (void)r;
    identity_changes(t, LISSOM_PIN_identity);
    events_give_up(); /* descriptors may no longer be shared */
    /* some namespaces are for processes of one thread, which a sleeping monitor would prevent */
    monitor_restart();
    return ACTION_DIRECT;
}

long attributes_make_timer(struct thread *t, struct user_registers *r)
{
    (void)r;
    thread_pin(t, LISSOM_PIN_identity);
    return ACTION_DIRECT;
}

long attributes_set_rseq(struct thread *t, struct user_registers *r)
{
    (void)r;
    thread_pin(t, LISSOM_PIN_rseq);
    return ACTION_DIRECT;
}

long attributes_count_events(struct thread *t, struct user_registers *r)
{
    if (is_of(t, r->rsi))
        thread_pin(t, LISSOM_PIN_identity); /* it counts events of its kernel thread */
    return ACTION_DIRECT;
}

long attributes_set_class(struct thread *t, struct user_registers *r)
{
    pin_for_attributes(t, (int32_t)r->rdi);
    r->rax = prim_syscall4(r->rax, r->rdi, r->rsi, r->rdx, r->r10);
    if (is_of(t, r->rdi)) {
        thread_look_at_class(t);
        return ACTION_RETURN;
    }
    /* Again: the thread may have registered, or handled to_be_pinned, before the call. */
    struct thread *other = thread_by_tid((int32_t)r->rdi);
    if (other)
        pin(t, other);
    return ACTION_RETURN;
}

void attributes_were_set(struct thread *t)
{
    if (sched.openmp_binds && t->openmp)
        cpu_is_of_team(t);
    if (t->own_attributes)
        thread_pin(t, LISSOM_PIN_affinity);
    else if (t->own_affinity && !t->place_bytes)
        pin_by_mask(t);
    else if (t->pinned_by_mask)
        thread_unpin(t);
}

/* Return the process's mask if the program sets the mask that it was shown in its place; otherwise
 * NULL. */
static const struct cpu_mask *set_as_read(const struct thread *t, const struct user_registers *r)
{
    struct cpu_mask m = {0};
    uint64_t bytes = (uint64_t)r->rsi < sizeof m.word ? (uint64_t)r->rsi : sizeof m.word;
    if (!visible_is_limited() || user_copy(t, m.word, (const void *)r->rdx, bytes))
        return NULL;
    return visible_is(&m) ? cpus_of_process() : NULL;
}

long attributes_set_affinity(struct thread *t, struct user_registers *r)
{
    struct thread *other = r->rdi ? thread_by_tid((int32_t)r->rdi) : t;
    const struct cpu_mask *process = set_as_read(t, r);
    const void *mask = process ? process->word : (const void *)r->rdx;
    uint64_t bytes = process ? process->bytes : (uint64_t)r->rsi;
    /* of another process, or of a thread that is not registered yet:
     * pthread_attr_setaffinity_np(3) */
    if (!other) {
        cpu_will_be_own((uint64_t)(int32_t)r->rdi);
        r->rax = prim_syscall3(SYS_sched_setaffinity, r->rdi, bytes, mask);
        /* it may have registered before cpu_will_be_own */
        other = thread_by_tid((int32_t)r->rdi);
        if (!other)
            return ACTION_RETURN;
    }
    r->rax = cpu_set_by_program(other, bytes, mask);
    if (r->rax < 0)
        return ACTION_RETURN;
    if (sched.openmp_binds && (other->openmp || other->tid == sched.pid))
        cpu_is_of_team(other);
    if (other == t)
        attributes_were_set(t);
    else
        __atomic_store_n(&other->to_be_pinned, true, __ATOMIC_RELAXED); /* or unpinned */
    return ACTION_RETURN;
}

/* Hide the binding to a slot's CPU, which the runtime has set, and CPUs that are not visible. */
long attributes_get_affinity(struct thread *t, struct user_registers *r)
{
    struct thread *other = r->rdi ? thread_by_tid((int32_t)r->rdi) : t;
    struct cpu_mask m = {0}, place;
    carrier_migrate_home(t);
    if (!other)
        return ACTION_DIRECT;
    bool hidden = cpu_is_hidden(other);
    /* unsigned int in the kernel, which accepts a mask that is shorter than its own */
    uint32_t size = (uint32_t)r->rsi;
    r->rax = prim_syscall3(SYS_sched_getaffinity, r->rdi,
                           size < sizeof m.word ? size : sizeof m.word, m.word);
    if (r->rax < 0)
        return ACTION_RETURN;
    if (cpu_place(other, &place)) {
        m = place;
    } else {
        if (hidden || cpu_is_hidden(other)) /* it may have been bound meanwhile */
            m = *cpus_of_process();
        visible_limit(&m);
    }
    if (user_copy(t, (void *)r->rdx, m.word, (size_t)r->rax))
        r->rax = -EFAULT;
    return ACTION_RETURN;
}
