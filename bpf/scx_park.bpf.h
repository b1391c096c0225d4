/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual blocking (Huang et al., HPDC'21, section 3.1) for threads under `lissom run`: a thread that waits for another one of its process does not sleep but is
 * passed over, and to wake it is to clear a flag. SCX_PARK in scx_lissom.h is the call, by which a thread hands its CPU to another one: nothing is left to do of
 * what a sleep and a wake-up cost but the switch.
 *
 * A parked thread is runnable to the kernel and in no queue: the scheduler keeps it and inserts it when it is woken, by the dispatch that follows the call of who
 * wakes it, on the same CPU. What is inserted while it is on its way off or on a CPU is disregarded by the kernel.
 *
 * Who parks sets its flag and then looks at its word; who wakes it has changed the word before and then clears the flag. So one of them sees the other: a thread
 * whose word has changed is not parked for good. One whose flag is cleared before it would be kept, is put into RUN like any other. docs/model/park.pml
 *
 * Bounded twice: a thread that is parked for longer than config.park_ns, or whose CPU has nothing else to run, is run, finds its word unchanged and sleeps. For that
 * each CPU has a ring of those that were parked there, each once: who is woken stays in it until it comes to the front. A parked thread gets no signal before. */
#pragma once

enum {
    LEAST_NS = 50000, /* of a slice: who is left less waits in RUN */
    RING = 2048,      /* threads: where there are more, the rest sleep */
    LOOKS = 32,       /* at the ring's front, each time */
    ALL = RING,       /* the same, by a CPU that has nothing else to do: it leaves nobody behind */
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

/* Nothing before it is seen after, nor the other way round. */
static u32 exchange(volatile u32 *word, u32 value) { return __sync_lock_test_and_set(word, value); }

/* It is kept. False: there is no room. */
static bool keep(struct task_struct *p, struct thread *t, s32 cpu)
{
    t->parked_at = scx_bpf_now();
    if (t->in_ring) return true;
    struct ring *r = ring_at(cpu);
    if (!r || r->tail - r->head >= RING) return false;
    r->pid[r->tail++ % RING] = p->pid;
    t->in_ring = true;
    return true;
}

/* The thread that was parked first here, if before `until`, is put into RUN. */
static bool end_parking(s32 cpu, u64 until, u32 looks)
{
    struct ring *r = ring_at(cpu);
    bool done = false;
    if (!r) return false;
    u32 i;
    bpf_for(i, 0, looks) {
        if (r->head == r->tail || done) break;
        u32 pid = r->pid[r->head % RING];
        struct task_struct *p = bpf_task_from_pid((s32)pid);
        if (!p) {
            r->head++;
            continue;
        }
        struct thread *t = thread_of(p);
        if (t && t->parked && !is_before(t->parked_at, until)) {
            r->head++;
            r->pid[r->tail++ % RING] = pid;
            bpf_task_release(p);
            continue;
        }
        r->head++;
        if (t) {
            t->in_ring = false;
            if (exchange(&t->parked, 0)) {
                COUNT(park_ends);
                insert_at(p, RUN(cpu), config.slice_ns, t->vtime, 0);
                done = true;
            }
        }
        bpf_task_release(p);
    }
    return done;
}

/* Now and then, because who is parked sleeps soon enough. */
static void end_old_parking(s32 cpu, struct cpu *c)
{
    u64 now = scx_bpf_now();
    if (now - c->aged < config.park_ns / 4) return;
    c->aged = now;
    end_parking(cpu, now - config.park_ns, LOOKS);
}

/* Whom the thread that calls has woken. True: that one runs next. */
static bool hand_on(s32 cpu, struct cpu *c, bool caller_parks)
{
    c->hands_on = false;
    struct task_struct *p = bpf_kptr_xchg(&c->woken, NULL);
    if (!p) return false;
    bool next = caller_parks && c->left_ns >= LEAST_NS && bpf_cpumask_test_cpu(cpu, scx(p)->cpus_ptr);
    if (next) {
        insert(p, SCX_DSQ_LOCAL, c->left_ns, 0);
    } else {
        struct thread *t = thread_of(p);
        s32 its = scx_bpf_task_cpu(p);
        if (t) insert_at(p, RUN(its), config.slice_ns, t->vtime, 0);
        if (its != cpu) scx_bpf_kick_cpu(its, SCX_KICK_IDLE);
    }
    bpf_task_release(p);
    return next;
}

/* The call, made by p. False: it is an ordinary sched_yield. */
static bool parks(struct task_struct *p, struct thread *t)
{
    struct pt_regs *r = (struct pt_regs *)bpf_task_pt_regs(p);
    if (r->di != SCX_PARK) return false;
    struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
    if (!c) return true;
    if (r->si) {
        u32 word = 0;
        exchange(&t->parked, 1);
        if (bpf_probe_read_user(&word, sizeof(word), (void *)r->si) || word != SCX_PARKED) t->parked = 0;
        COUNT(parks);
    }
    if (!r->dx) return true;
    /* Somebody else has called here, and for threads of the kernel or of higher classes there has been no dispatch since: then who is to be woken sees its word
     * when its parking ends. */
    if (c->hands_on) return true;
    struct task_struct *other = bpf_task_from_vpid((s32)r->dx);
    if (!other) return true;
    struct thread *o = other->tgid == p->tgid ? thread_of(other) : NULL;
    if (o && exchange(&o->parked, 0)) {
        COUNT(unparks);
        c->left_ns = scx(p)->scx.slice;
        c->hands_on = true;
        other = bpf_kptr_xchg(&c->woken, other);
    }
    if (other) bpf_task_release(other);
    return true;
}
