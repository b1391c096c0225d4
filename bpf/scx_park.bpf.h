/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual blocking (Huang et al., HPDC'21, section 3.1) for threads under `lissom run`: a thread
 * that waits for another one of its process does not sleep but is passed over, and to wake it is to
 * clear a flag. SCX_PARK in scx_lissom.h is the call, by which a thread hands its CPU to another
 * one: nothing is left to do of what a sleep and a wake-up cost but the switch.
 *
 * A parked thread is runnable to the kernel and in no queue: the scheduler keeps it and inserts it
 * when it is woken, by the dispatch that follows the call of who wakes it, on the same CPU. What is
 * inserted while it is on its way off or on a CPU is disregarded by the kernel.
 *
 * Who parks has noted that in a word of the process first, and who wakes it has changed that word.
 * It may be early: then the thread is told, and does not park. So nobody is parked who was woken,
 * and the word need not be looked at here. One whose parking is ended before it would be kept, is
 * put into RUN like any other. A thread that was told but had come back already does not park the
 * next time, for nothing. docs/model/park.pml
 *
 * Bounded twice: a thread that is parked for longer than config.park_ns, or whose CPU has nothing
 * else to run, is run, finds its word unchanged and sleeps. For that each CPU has a ring of those
 * that were parked there, each once: who is woken stays in it until it comes to the front. A parked
 * thread gets no signal before. */
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

/* struct thread's `parked`. Each change is a locked one: nothing before it is seen after, nor the
 * other way round. */
enum parking {
    NOT,
    PARKED, /* it is parked, or going to be; who makes that NOT has it run */
    TOLD,   /* it was woken before it was parked: the next time it is not, and the mark goes */
};

/* True: it was PARKED, and the caller has it run. */
static bool ends_parking(struct thread *t)
{
    return __sync_val_compare_and_swap(&t->parked, PARKED, NOT) == PARKED;
}

/* The same, and else it is told. */
static bool wakes(struct thread *t)
{
    if (ends_parking(t)) return true;
    /* PARKED: just now. Whoever else might end that means the same. */
    return __sync_val_compare_and_swap(&t->parked, NOT, TOLD) == PARKED && ends_parking(t);
}

/* The calling thread itself. False: it was told. */
static bool begins_parking(struct thread *t)
{
    if (__sync_val_compare_and_swap(&t->parked, NOT, PARKED) == NOT) return true;
    t->parked = NOT;
    return false;
}

/* It is kept. False: there is no room, and it is not parked any more. */
static bool keep(struct task_struct *p, struct thread *t, s32 cpu)
{
    t->parked_at = scx_bpf_now();
    if (t->in_ring) return true;
    struct ring *r = ring_at(cpu);
    if (!r || r->tail - r->head >= RING) {
        ends_parking(t);
        return false;
    }
    r->pid[r->tail++ % RING] = p->pid;
    t->in_ring = true;
    return true;
}

/* The parked thread p runs on, and finds out why. Its CPU may be another one than where it was
 * parked first, and has to be: with its affinity it has moved. */
static s32 put_back(struct task_struct *p, struct thread *t, s32 cpu)
{
    s32 its = scx_bpf_task_cpu(p);
    queue_up(p, t, its, 0);
    if (its != cpu) scx_bpf_kick_cpu(its, SCX_KICK_IDLE);
    return its;
}

/* The parking of those who were parked here before `until` ends, up to the first that is put into
 * this CPU's RUN. True: there is one. */
static bool end_parking(s32 cpu, u64 until, u32 looks)
{
    struct ring *r = ring_at(cpu);
    bool done = false;
    if (!r) return false;
    u32 i;
    bpf_for(i, 0, looks) {
        if (r->head == r->tail || done) break;
        u32 pid = r->pid[r->head++ % RING];
        struct task_struct *p = bpf_task_from_pid((s32)pid);
        if (!p) continue;
        struct thread *t = thread_of(p);
        if (t && t->parked == PARKED && !is_before(t->parked_at, until)) {
            r->pid[r->tail++ % RING] = pid;
        } else if (t) {
            t->in_ring = false;
            if (ends_parking(t)) {
                COUNT(park_ends);
                done = put_back(p, t, cpu) == cpu;
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
    bool next = caller_parks && c->left_ns >= LEAST_NS && may_run(p, cpu);
    if (next) {
        insert(p, SCX_DSQ_LOCAL, c->left_ns, 0);
    } else {
        struct thread *t = thread_of(p);
        if (t) put_back(p, t, cpu);
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
    struct scx_counts *n = counts();
    if (!c || !n) return true;
    int parker = 0;
    if (r->si && begins_parking(t)) {
        n->parks++;
        parker = p->pid;
    }
    if (!r->dx) return true;
    /* Somebody else has called here, and for threads of the kernel or of higher classes there has
     * been no dispatch since: then who is to be woken sees its word when its parking ends. */
    if (c->hands_on) return true;
    struct task_struct *other = bpf_task_from_vpid((s32)r->dx);
    if (!other) return true;
    struct thread *o = other->tgid == p->tgid ? thread_of(other) : NULL;
    if (o && wakes(o)) {
        n->unparks++;
        c->left_ns = scx(p)->scx.slice;
        c->parker = parker;
        c->hands_on = true;
        other = bpf_kptr_xchg(&c->woken, other);
    }
    if (other) bpf_task_release(other);
    return true;
}
