// SPDX-License-Identifier: GPL-2.0
/* A scheduler for more threads than CPUs: docs/operate/sched.md, docs/design/kernel-scheduler.md.
 *
 * Each CPU has two queues. RUN holds the threads that want to run, in the order of their virtual
 * time. SPIN holds those that were found busy-waiting, or that yielded. Such a thread is passed
 * over until all threads that were in RUN when it entered SPIN have run. Threads under `lissom run`
 * that wait for another thread of their process are in neither (scx_park.bpf.h).
 *
 * A woken thread goes back to the CPU where it ran last, unless another one is idle. It waits there
 * until the running thread's time is over. So a barrier that wakes 30 threads preempts and migrates
 * none. A CPU without threads steals from the others. At intervals, a CPU takes a thread from a
 * longer queue.
 *
 * If anything goes wrong, the kernel returns to its own scheduler: an error here, a thread that
 * does not run for ops.timeout_ms, or the end of the tool that loaded it. */
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
#include "scx_scan.bpf.h"
#include "scx_paper.bpf.h"
#include "scx_cgroups.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

void BPF_STRUCT_OPS(lissom_enqueue, struct task_struct *p, u64 enq_flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct task_ctx *t = try_lookup_task_ctx(p);
    /* Its run time is charged when it is no longer parked. */
    if (t && t->parked == PARKED && keep_parked(p, t, cpu))
        return;
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    /* Run kernel threads that are bound to a CPU at once: others wait for them, and they are soon
     * done. */
    if (!t || !c || (p->flags & PF_KTHREAD && scx(p)->nr_cpus_allowed == 1)) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
        return;
    }
    /* A thread that slept has been charged when it went to sleep. */
    if (t->counted)
        charge(p, t, c, cpu);
    move_vtime(t, c, cpu);
    count_runnable(p, t);
    if (t->is_spinning)
        enqueue_spin(p, t, c, cpu, enq_flags);
    else
        enqueue_run(p, t, cpu, enq_flags);
}

void BPF_STRUCT_OPS(lissom_dispatch, s32 cpu, struct task_struct *prev)
{
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    if (!c || stall)
        return;
    bool has_woken = c->has_woken;
    if (has_woken && dispatch_woken(cpu, c, prev && prev->pid == c->parker))
        return;
    struct task_ctx *t =
        prev && scx(prev)->scx.flags & SCX_TASK_QUEUED ? try_lookup_task_ctx(prev) : NULL;
    bool is_parking = t && t->parked == PARKED;
    if (t && (t->is_spinning || is_parking))
        t = NULL;
    /* Otherwise the compiler does not test the pointer itself for NULL, and the verifier cannot
     * follow the test. */
    barrier_var(t);

    if (has_woken && t) {
        scx_bpf_task_set_slice(prev, c->left_ns);
        return;
    }
    expire_old_parked(cpu, c);
    if (dispatch_starved(cpu, c))
        return;
    if (c->has_spinning && dispatch_spin(cpu, c, false))
        return;
    /* The running thread's slice is over, or it yields. */
    if (t) {
        if (keeps_cpu(prev, t, cpu)) {
            scx_bpf_task_set_slice(prev, slice_ns);
            return;
        }
        if (balance(cpu, c)) {
            COUNT(steals);
            return;
        }
    }
    if (scx_bpf_dsq_move_to_local(run_dsq(cpu))) {
        c->runs++;
        wake_thief(cpu, c);
        return;
    }
    /* RUN is empty: the threads to wait for have left, perhaps for another CPU. Checked before the
     * running thread continues, or that would continue for ever. */
    if (c->has_spinning && dispatch_spin(cpu, c, true))
        return;
    if (t) {
        scx_bpf_task_set_slice(prev, slice_ns);
        return;
    }
    mark_empty(cpu);
    if (steal(cpu)) {
        COUNT(steals);
        return;
    }
    /* No other thread needs the CPU: let parked threads sleep, so that an idle CPU has none to
     * expire. */
    t = is_parking ? try_lookup_task_ctx(prev) : NULL;
    if (t && try_unpark(t)) {
        COUNT(park_ends);
        scx_bpf_task_set_slice(prev, slice_ns);
    } else if (expire_parked(cpu, ~0ULL >> 1, EXPIRE_ALL)) {
        scx_bpf_dsq_move_to_local(run_dsq(cpu));
    }
}

/* p sleeps, or is about to change its class, its group or its affinity. Charge its run time here
 * and in lissom_enqueue, rather than in an operation called at each switch. The kernel updates
 * sum_exec_runtime only after this, so the last bit counts the next time. */
void BPF_STRUCT_OPS(lissom_quiescent, struct task_struct *p, u64 deq_flags)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct task_ctx *t = try_lookup_task_ctx(p);
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    if (!t || !c)
        return;
    charge(p, t, c, cpu);
    t->is_spinning = false;
    uncount_runnable(t);
}

/* p's nice value has changed. */
void BPF_STRUCT_OPS(lissom_set_weight, struct task_struct *p, u32 weight)
{
    struct task_ctx *t = try_lookup_task_ctx(p);
    if (!t || !t->counted)
        return;
    group_add_load(t->group, t->counted, -1);
    t->counted = weight ?: WEIGHT;
    group_add_load(t->group, t->counted, 1);
}

/* p leaves for another class, perhaps without having run. */
void BPF_STRUCT_OPS(lissom_disable, struct task_struct *p)
{
    struct task_ctx *t = try_lookup_task_ctx(p);
    if (t)
        uncount_runnable(t);
}

void BPF_STRUCT_OPS(lissom_enable, struct task_struct *p)
{
    struct task_ctx *t = try_lookup_task_ctx(p);
    if (!t)
        return;
    t->cpu = -1;
    t->charged = scx(p)->se.sum_exec_runtime;
}

/* sched_yield: run the other threads that are here now first. */
bool BPF_STRUCT_OPS(lissom_yield, struct task_struct *from, struct task_struct *to)
{
    struct task_ctx *t = try_lookup_task_ctx(from);
    if (t && !park_call(from, t))
        t->is_spinning = true;
    scx_bpf_task_set_slice(from, 0);
    return false;
}

/* Wake a CPU that has gone idle since threads came to wait behind the running one. */
void BPF_STRUCT_OPS(lissom_tick, struct task_struct *p)
{
    s32 cpu = scx_bpf_task_cpu(p);
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    if (!c || nr_cpus < 2 || !any_idle() || !is_wanted(cpu, c))
        return;
    mark_queued(cpu);
    kick_idle_cpu(scx(p)->cpus_ptr);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lissom_init_task, struct task_struct *p,
                             struct scx_init_task_args *args)
{
    struct task_ctx *t =
        bpf_task_storage_get(&task_ctx_stor, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!t)
        return -12; /* ENOMEM */
    t->group = group_of(args->cgroup);
    t->parked = NOTIFIED; /* it may have been woken before this scheduler started */
    return 0;
}

/* That these operations exist also shows the kernel that CPUs may come and go. */
void BPF_STRUCT_OPS(lissom_cpu_online, s32 cpu)
{
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    if (c)
        c->is_offline = false;
}

void BPF_STRUCT_OPS(lissom_cpu_offline, s32 cpu)
{
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    if (!c)
        return;
    c->is_offline = true;
    return_tasks(cpu, run_dsq(cpu));
    return_tasks(cpu, spin_dsq(cpu));
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lissom_init)
{
    nr_cpus = scx_bpf_nr_cpu_ids();
    if (nr_cpus > MAX_CPUS)
        return -7; /* E2BIG */
    u32 i;
    bpf_for(i, 0, nr_cpus) {
        s32 error = scx_bpf_create_dsq(run_dsq(i), -1) ?: scx_bpf_create_dsq(spin_dsq(i), -1);
        if (error)
            return error;
    }
    return 0;
}

void BPF_STRUCT_OPS_SLEEPABLE(lissom_exit, struct scx_exit_info *info) { UEI_RECORD(uei, info); }

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
