/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual blocking (Huang et al., HPDC'21, section 3.1) for threads under `lissom run`. A thread
 * that waits for another one of its process does not sleep but is passed over, and a wake-up clears
 * a flag. By the call SCX_PARK (scx_lissom.h) a thread hands its CPU to another one. Of the cost of
 * a sleep and a wake-up only the switch is left.
 *
 * A parked thread is runnable to the kernel, and in no queue: the scheduler keeps it. When it is
 * woken, the dispatch that follows the waker's call inserts it, on the same CPU. The kernel ignores
 * an insertion of a thread that is about to leave a CPU, or to run on one.
 *
 * Before it parks, a thread notes that in a word of the process, and its waker changes that word. A
 * waker may be early: it then marks the thread as woken, and the thread does not park. So no woken
 * thread is parked, and the word need not be read here. A thread whose parking ends before it would
 * be kept enters RUN like any other. If a marked thread had already returned, its next call
 * needlessly returns without parking. Model: docs/model/park.pml.
 *
 * Parking is bounded twice. A thread that is parked for longer than park_ns, or whose CPU has
 * nothing else to run, is run, finds its word unchanged and sleeps. For that each CPU has a
 * ring of the threads that were parked there, each once. A woken thread stays in it until it comes
 * to the front. A parked thread gets no signal before. */
#pragma once

#include "scx_queues.bpf.h"
#include "scx_tunables.bpf.h"

enum {
    RING = 2048,       /* threads; further ones sleep */
    EXPIRE_SOME = 32,  /* threads checked at the ring's front, each time */
    EXPIRE_ALL = RING, /* by a CPU that has nothing else to do: it leaves none behind */
};

struct ring {
    u32 head, tail;
    u32 pid[RING];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_CPUS);
    __type(key, u32);
    __type(value, struct ring);
} rings SEC(".maps");

static struct ring *ring_at(s32 cpu)
{
    u32 key = cpu;
    return bpf_map_lookup_elem(&rings, &key);
}

/* `parked` of struct task_ctx. Each change is a locked instruction, hence a full fence. */
enum parking {
    NOT,
    PARKED,   /* it is parked, or about to be; the thread that makes this NOT has to run it */
    NOTIFIED, /* woken before it was parked: its next call does not park it, and clears this */
};

/* End t's parking. Returns true if it was PARKED: the caller has to run it. */
static bool try_unpark(struct task_ctx *t)
{
    return __sync_val_compare_and_swap(&t->parked, PARKED, NOT) == PARKED;
}

/* Wake t. Returns true if it was PARKED: the caller has to run it. Otherwise t is marked as
 * woken. */
static bool unpark(struct task_ctx *t)
{
    if (try_unpark(t))
        return true;
    /* PARKED: a moment ago. Another caller that ends that means the same. */
    return __sync_val_compare_and_swap(&t->parked, NOT, NOTIFIED) == PARKED && try_unpark(t);
}

/* Park the calling thread. Returns false if it was marked as woken; clears the mark. */
static bool try_park(struct task_ctx *t)
{
    if (__sync_val_compare_and_swap(&t->parked, NOT, PARKED) == NOT)
        return true;
    t->parked = NOT;
    return false;
}

/* Keep a parked thread. Returns false if there is no room: it is no longer parked then. */
static bool keep_parked(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
    t->parked_at = scx_bpf_now();
    if (t->in_ring)
        return true;
    struct ring *r = ring_at(cpu);
    if (!r || r->tail - r->head >= RING) {
        try_unpark(t);
        return false;
    }
    r->pid[r->tail++ % RING] = p->pid;
    t->in_ring = true;
    return true;
}

/* Enqueue p, whose parking has ended. Returns its CPU, which is not the one where it was parked if
 * its affinity has changed since. */
static s32 requeue(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
    s32 its = scx_bpf_task_cpu(p);
    enqueue_run(p, t, its, 0);
    if (its != cpu)
        scx_bpf_kick_cpu(its, SCX_KICK_IDLE);
    return its;
}

/* End the parking of threads that were parked here before `until`, up to the first that enters this
 * CPU's RUN. Checks `most` threads. Returns whether one has entered RUN. */
static bool expire_parked(s32 cpu, u64 until, u32 most)
{
    struct ring *r = ring_at(cpu);
    bool done = false;
    u32 i;

    if (!r)
        return false;
    bpf_for(i, 0, most) {
        if (r->head == r->tail || done)
            break;
        u32 pid = r->pid[r->head++ % RING];
        struct task_struct *p = bpf_task_from_pid((s32)pid);
        if (!p)
            continue;
        struct task_ctx *t = try_lookup_task_ctx(p);
        if (t && t->parked == PARKED && !is_before(t->parked_at, until)) {
            r->pid[r->tail++ % RING] = pid;
        } else if (t) {
            t->in_ring = false;
            if (try_unpark(t)) {
                COUNT(park_ends);
                done = requeue(p, t, cpu) == cpu;
            }
        }
        bpf_task_release(p);
    }
    return done;
}

/* End the parking of threads that are parked for too long. Not at each dispatch: they sleep soon
 * enough. */
static void expire_old_parked(s32 cpu, struct cpu_ctx *c)
{
    u64 now = scx_bpf_now();
    if (now - c->expired < park_ns / 4)
        return;
    c->expired = now;
    expire_parked(cpu, now - park_ns, EXPIRE_SOME);
}

/* Run the thread that the last call has woken next, or enqueue it in RUN. Returns whether it runs
 * next. */
static bool dispatch_woken(s32 cpu, struct cpu_ctx *c, bool caller_parks)
{
    c->has_woken = false;
    struct task_struct *p = bpf_kptr_xchg(&c->woken, NULL);
    if (!p)
        return false;
    bool next = caller_parks && c->left_ns >= handoff_ns && may_run(p, cpu);
    if (next) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, c->left_ns, 0);
    } else {
        struct task_ctx *t = try_lookup_task_ctx(p);
        if (t)
            requeue(p, t, cpu);
    }
    bpf_task_release(p);
    return next;
}

/* Perform the call SCX_PARK of p. Returns false if the call is an ordinary sched_yield. */
static bool park_call(struct task_struct *p, struct task_ctx *t)
{
    struct pt_regs *r = (struct pt_regs *)bpf_task_pt_regs(p);
    if (r->di != SCX_PARK)
        return false;
    struct cpu_ctx *c = try_lookup_cpu_ctx(scx_bpf_task_cpu(p));
    struct scx_counts *n = counts();
    if (!c || !n)
        return true;
    int parker = 0;
    if (r->si && try_park(t)) {
        n->parks++;
        parker = p->pid;
    }
    if (!r->dx)
        return true;
    /* Another thread has called here, and kernel threads or higher classes have prevented a
     * dispatch since. The thread to wake sees its word when its parking ends. */
    if (c->has_woken)
        return true;
    struct task_struct *other = bpf_task_from_vpid((s32)r->dx);
    if (!other)
        return true;
    struct task_ctx *o = other->tgid == p->tgid ? try_lookup_task_ctx(other) : NULL;
    if (o && unpark(o)) {
        n->unparks++;
        c->left_ns = scx(p)->scx.slice;
        c->parker = parker;
        c->has_woken = true;
        other = bpf_kptr_xchg(&c->woken, other);
    }
    if (other)
        bpf_task_release(other);
    return true;
}
