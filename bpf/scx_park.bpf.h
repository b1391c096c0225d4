/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual blocking (Huang et al., HPDC'21, section 3.1) for threads under `lissom run`: a thread that waits for another one of its process does not sleep but is
 * passed over, and to wake it is to clear a flag. SCX_PARK in scx_lissom.h is the call, by which a thread hands its CPU to another one: nothing is left to do of
 * what a sleep and a wake-up cost but the switch.
 *
 * Who parks sets its flag and then looks at its word; who wakes it has changed the word before and then clears the flag. So one of them sees the other: a thread
 * whose word has changed is not parked for good. A flag that is cleared before its thread stands in PARK is seen when it is put there, and one that is cleared
 * just then, by the CPU's next dispatch, which `unparked` tells to look.
 *
 * Bounded twice: a thread that is parked for longer than config.park_ns, or whose CPU has nothing else to run, is run, finds its word unchanged and sleeps. It
 * cannot get a signal before. */
#pragma once

enum { LEAST_NS = 50000 /* of a slice: who is left less waits in RUN */ };

/* Nothing before it is seen after, nor the other way round. */
static u32 exchange(volatile u32 *word, u32 value) { return __sync_lock_test_and_set(word, value); }

/* Pre: parked threads of CPU `from`. Of those that have been woken the first that may run here is run next, with what is left of the slice of who woke it. */
static bool take_woken(s32 cpu, u32 from, u64 slice)
{
    struct bpf_iter_scx_dsq it;
    bool done = false;
    if (!bpf_iter_scx_dsq_new(&it, PARK(from), 0)) {
        struct task_struct *p;
        while ((p = bpf_iter_scx_dsq_next(&it))) {
            struct thread *t = thread_of(p);
            if (!t || t->parked) continue;
            if (slice < LEAST_NS || !bpf_cpumask_test_cpu(cpu, scx(p)->cpus_ptr)) break;
            scx_bpf_dsq_move_set_slice(&it, slice);
            done = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
            break;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    if (done) return true;
    /* It is on its way there, may not run here, or it is somebody else's turn. */
    struct cpu *c = cpu_at(from);
    if (c) c->unparked = true;
    if (from != (u32)cpu) scx_bpf_kick_cpu(from, SCX_KICK_IDLE);
    return false;
}

/* Those that have been woken go to RUN. */
static void move_woken(s32 cpu)
{
    struct bpf_iter_scx_dsq it;
    if (!bpf_iter_scx_dsq_new(&it, PARK(cpu), 0)) {
        struct task_struct *p;
        while ((p = bpf_iter_scx_dsq_next(&it))) {
            struct thread *t = thread_of(p);
            if (!t || t->parked) continue;
            scx_bpf_dsq_move_set_vtime(&it, t->vtime);
            scx_bpf_dsq_move_vtime(&it, p, RUN(cpu), 0);
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

/* The thread that has been parked for longest, if since before `until`, is run. */
static bool end_parking(s32 cpu, struct cpu *c, u64 until)
{
    struct bpf_iter_scx_dsq it;
    bool any = false, is_due = false;
    if (!bpf_iter_scx_dsq_new(&it, PARK(cpu), 0)) {
        struct task_struct *p = bpf_iter_scx_dsq_next(&it);
        struct thread *t = p ? thread_of(p) : NULL;
        if (t) {
            any = true;
            is_due = until == ~0ULL || is_before(scx(p)->scx.dsq_vtime, until);
            if (is_due) t->parked = 0;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    if (!any) c->parks = false;
    if (!is_due) return false;
    COUNT(park_ends);
    return take(PARK(cpu));
}

static bool look_at_parked(s32 cpu, struct cpu *c)
{
    if (c->unparked) {
        c->unparked = false;
        move_woken(cpu);
    }
    u64 now = scx_bpf_now();
    if (now - c->aged < config.park_ns / 4) return false;
    c->aged = now;
    return end_parking(cpu, c, now - config.park_ns);
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
    struct task_struct *other = bpf_task_from_vpid((s32)r->dx);
    if (!other) return true;
    struct thread *o = other->tgid == p->tgid ? thread_of(other) : NULL;
    if (o && exchange(&o->parked, 0)) {
        s32 cpu = scx_bpf_task_cpu(other);
        COUNT(unparks);
        if (t->parked) {
            c->hand_on = cpu + 1;
            c->hand_on_slice = scx(p)->scx.slice;
        } else {
            struct cpu *its = cpu_at(cpu);
            if (its) its->unparked = true;
            scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
        }
    }
    bpf_task_release(other);
    return true;
}
