// SPDX-License-Identifier: GPL-2.0
/* A scheduler for more threads than CPUs: docs/operate/sched.md, docs/design/kernel-scheduler.md.
 *
 * Each CPU has two queues. RUN holds the threads that want to run, in the order of their virtual
 * time. SPIN holds those that were found waiting in a loop, or that yielded. Each is passed over
 * until all that stood in RUN when it came have run. Threads under `lissom run` that wait for
 * another thread of their process are in neither (scx_park.bpf.h).
 *
 * A woken thread goes back to the CPU where it ran last, unless another one is idle. It waits there
 * until the running thread's time is over. So a barrier that wakes 30 threads preempts and migrates
 * none. A CPU without threads steals from the others. A CPU with a much shorter queue than another
 * takes a thread now and then.
 *
 * If anything goes wrong, the kernel returns to its own scheduler: an error here, a thread that
 * does not run for ops.timeout_ms, or the end of the loader. */
#include "scx.h"
#include "user_exit_info.bpf.h"
#include "scx_lissom.h"
#include "scx_state.bpf.h"
#include "scx_tunables.bpf.h"
#include "scx_queues.bpf.h"
#include "scx_vtime.bpf.h"
#include "scx_wake.bpf.h"
#include "scx_park.bpf.h"
#include "scx_steal.bpf.h"
#include "scx_look.bpf.h"
#include "scx_paper.bpf.h"
#include "scx_cgroups.bpf.h"

char LICENSE[] SEC("license") = "GPL";

UEI_DEFINE(uei);

SEC("struct_ops/lissom_enqueue")
void BPF_PROG(lissom_enqueue, struct task_struct *p, u64 flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct thread *t = thread_of(p);
    /* Its run time is charged when it is no longer parked. */
    if (t && t->parked == PARKED && keep(p, t, cpu))
        return;
    struct cpu *c = cpu_at(cpu);
    /* Run kernel threads that are bound to a CPU at once: others wait for them, and they are soon
     * done. */
    if (!t || !c || (p->flags & PF_KTHREAD && scx(p)->nr_cpus_allowed == 1)) {
        insert(p, SCX_DSQ_LOCAL, slice_ns, flags);
        return;
    }
    /* A thread that slept has been charged when it went to sleep. */
    if (t->counted)
        charge(p, t, c, cpu);
    settle(t, c, cpu);
    account(p, t);
    if (t->aside)
        put_aside(p, t, c, cpu, flags);
    else
        queue_up(p, t, cpu, flags);
}

SEC("struct_ops/lissom_dispatch")
void BPF_PROG(lissom_dispatch, s32 cpu, struct task_struct *previous)
{
    struct cpu *c = cpu_at(cpu);
    if (!c || stall)
        return;
    bool hands_on = c->hands_on;
    if (hands_on && hand_on(cpu, c, previous && previous->pid == c->parker))
        return;
    struct thread *t =
        previous && scx(previous)->scx.flags & SCX_TASK_QUEUED ? thread_of(previous) : NULL;
    bool is_parking = t && t->parked == PARKED;
    if (t && (t->aside || is_parking))
        t = NULL;
    /* otherwise the compiler tests something else than the pointer for NULL, which the verifier
     * does not follow */
    barrier_var(t);

    if (hands_on && t) {
        set_slice(previous, c->left_ns);
        return;
    }
    end_old_parking(cpu, c);
    if (care(cpu, c))
        return;
    if (c->aside && take_aside(cpu, c, false))
        return;
    /* The running thread's slice is over, or it yields. */
    if (t) {
        if (goes_on(previous, t, cpu)) {
            set_slice(previous, slice_ns);
            return;
        }
        if (balance(cpu, c)) {
            COUNT(steals);
            return;
        }
    }
    if (take(RUN(cpu))) {
        c->runs++;
        wake_thief(cpu, c);
        return;
    }
    /* RUN is empty: the threads to wait for have left, perhaps for another CPU. Checked before the
     * running thread continues, or that would continue for ever. */
    if (c->aside && take_aside(cpu, c, true))
        return;
    if (t) {
        set_slice(previous, slice_ns);
        return;
    }
    note_empty(cpu);
    if (steal(cpu)) {
        COUNT(steals);
        return;
    }
    /* No other thread needs the CPU: let parked threads sleep, so that an idle CPU has none to care
     * for. */
    t = is_parking ? thread_of(previous) : NULL;
    if (t && ends_parking(t)) {
        COUNT(park_ends);
        set_slice(previous, slice_ns);
    } else if (end_parking(cpu, ~0ULL >> 1, ALL)) {
        take(RUN(cpu));
    }
}

/* p sleeps, or is about to change its class, its group or its affinity. Its run time is charged
 * here and in lissom_enqueue, rather than in an operation called at each switch. The kernel updates
 * sum_exec_runtime only after this, so the last bit counts the next time. */
SEC("struct_ops/lissom_quiescent")
void BPF_PROG(lissom_quiescent, struct task_struct *p, u64 flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct thread *t = thread_of(p);
    struct cpu *c = cpu_at(cpu);
    if (!t || !c)
        return;
    charge(p, t, c, cpu);
    t->aside = false;
    account_no_more(t);
}

/* p's nice value has changed. */
SEC("struct_ops/lissom_set_weight")
void BPF_PROG(lissom_set_weight, struct task_struct *p, u32 weight)
{
    struct thread *t = thread_of(p);
    if (!t || !t->counted)
        return;
    group_load(t->group, t->counted, -1);
    t->counted = weight ?: WEIGHT;
    group_load(t->group, t->counted, 1);
}

/* p leaves for another class, perhaps without having run. */
SEC("struct_ops/lissom_disable")
void BPF_PROG(lissom_disable, struct task_struct *p)
{
    struct thread *t = thread_of(p);
    if (t)
        account_no_more(t);
}

SEC("struct_ops/lissom_enable")
void BPF_PROG(lissom_enable, struct task_struct *p)
{
    struct thread *t = thread_of(p);
    if (!t)
        return;
    t->cpu = -1;
    t->charged = scx(p)->se.sum_exec_runtime;
}

/* sched_yield: run the other threads that are here now first. */
SEC("struct_ops/lissom_yield")
bool BPF_PROG(lissom_yield, struct task_struct *from, struct task_struct *to)
{
    struct thread *t = thread_of(from);
    if (t && !parks(from, t))
        t->aside = true;
    set_slice(from, 0);
    return false;
}

/* Wake a CPU that has gone idle since threads came to wait behind the running one. */
SEC("struct_ops/lissom_tick")
void BPF_PROG(lissom_tick, struct task_struct *p)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct cpu *c = cpu_at(cpu);
    if (!c || nr_cpus < 2 || !any_idle() || (!c->aside && scx_bpf_dsq_nr_queued(RUN(cpu)) <= 0))
        return;
    note_waiting(cpu);
    s32 idle = scx_bpf_pick_idle_cpu(scx(p)->cpus_ptr, 0);
    if (idle >= 0)
        scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

SEC("struct_ops.s/lissom_init_task")
s32 BPF_PROG(lissom_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct thread *t = bpf_task_storage_get(&threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!t)
        return -12; /* ENOMEM */
    t->group = group_of(args->cgroup);
    t->parked = TOLD; /* it may have been woken before this scheduler started */
    return 0;
}

/* That these operations exist also shows the kernel that CPUs may come and go. */
SEC("struct_ops/lissom_cpu_online")
void BPF_PROG(lissom_cpu_online, s32 cpu)
{
    struct cpu *c = cpu_at(cpu);
    if (c)
        c->is_off = false;
}

/* Let the kernel move the threads of a queue whose CPU goes offline. Those that may run on no other
 * CPU must be seen by the kernel there, which then lets them run elsewhere. Before that the CPU
 * does not go. */
static void leave(u64 queue, s32 cpu)
{
    struct bpf_iter_scx_dsq it;
    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        struct task_struct *p;
        u32 i;
        bpf_for(i, 0, 1 << 20) {
            p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            if (may_run(p, cpu))
                scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | cpu, 0);
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
}

SEC("struct_ops/lissom_cpu_offline")
void BPF_PROG(lissom_cpu_offline, s32 cpu)
{
    struct cpu *c = cpu_at(cpu);
    if (!c)
        return;
    c->is_off = true;
    leave(RUN(cpu), cpu);
    leave(SPIN(cpu), cpu);
}

SEC("struct_ops.s/lissom_init")
s32 BPF_PROG(lissom_init)
{
    nr_cpus = scx_bpf_nr_cpu_ids();
    if (nr_cpus > MAX_CPUS)
        return -7; /* E2BIG */
    u32 i;
    bpf_for(i, 0, nr_cpus) {
        s32 error = scx_bpf_create_dsq(RUN(i), -1) ?: scx_bpf_create_dsq(SPIN(i), -1);
        if (error)
            return error;
    }
    return 0;
}

SEC("struct_ops.s/lissom_exit")
void BPF_PROG(lissom_exit, struct scx_exit_info *info) { UEI_RECORD(uei, info); }

SEC(".struct_ops.link")
struct sched_ext_ops lissom_ops = {
    .select_cpu = (void *)lissom_select_cpu,
    .enqueue = (void *)lissom_enqueue,
    .dispatch = (void *)lissom_dispatch,
    .quiescent = (void *)lissom_quiescent,
    .set_weight = (void *)lissom_set_weight,
    .enable = (void *)lissom_enable,
    .disable = (void *)lissom_disable,
    .yield = (void *)lissom_yield,
    .tick = (void *)lissom_tick,
    .init_task = (void *)lissom_init_task,
    .cgroup_init = (void *)lissom_cgroup_init,
    .cgroup_exit = (void *)lissom_cgroup_exit,
    .cgroup_move = (void *)lissom_cgroup_move,
    .cgroup_set_weight = (void *)lissom_cgroup_set_weight,
    .cgroup_set_bandwidth = (void *)lissom_cgroup_set_bandwidth,
    .cpu_online = (void *)lissom_cpu_online,
    .cpu_offline = (void *)lissom_cpu_offline,
    .init = (void *)lissom_init,
    .exit = (void *)lissom_exit,
    .flags = SCX_OPS_ALLOW_QUEUED_WAKEUP,
    .timeout_ms = 5000,
    .name = "lissom",
};
