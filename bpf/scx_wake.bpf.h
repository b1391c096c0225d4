/* SPDX-License-Identifier: GPL-2.0 */
/* Wake-ups of threads that sleep in the kernel: the part of virtual blocking that is left for
 * programs without preloading. The kernel has dequeued such a thread, which no scheduler can
 * prevent; docs/design/kernel-scheduler.md ("Without preloading") lists what remains. One rule is
 * here.
 *
 * A thread that wakes at least as many threads at once as there are CPUs leaves each on the CPU
 * where it ran last, idle or not. The next one that it wakes belongs to that other CPU. Each CPU
 * keeps its share, and only threads above that move to an idle CPU. If another CPU is still idle
 * when the first of them run, it is woken to steal. */
#pragma once

#include "scx_queues.bpf.h"
#include "scx_tunables.bpf.h"

/* Return whether any CPU is idle. */
static bool any_idle(void)
{
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    bool any = !bpf_cpumask_empty(idle);
    scx_bpf_put_idle_cpumask(idle);
    return any;
}

/* Wake an idle CPU of `allowed`, to run or steal threads. */
static void kick_idle_cpu(const struct cpumask *allowed)
{
    s32 cpu = scx_bpf_pick_idle_cpu(allowed, 0);
    if (cpu >= 0)
        scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Note a wake-up by the running thread. Returns the size of its bulk: the threads that it has woken
 * at once so far, or the recent bulk of its process, if that is larger. */
static u32 note_wakeup(void)
{
    struct task_struct *waker = bpf_get_current_task_btf();
    struct task_ctx *w = try_lookup_task_ctx(waker);
    if (!w)
        return 0;
    struct task_struct *leader = scx(waker)->group_leader;
    struct task_ctx *process = leader ? try_lookup_task_ctx(leader) : NULL;
    u64 now = scx_bpf_now();
    u64 switches = nr_switches(waker);
    bool is_new = now - w->woke_at > bulk_gap_ns || w->woke_switches != switches;
    w->woke_at = now;
    w->woke_switches = switches;
    w->wakes = is_new ? 1 : w->wakes + 1;
    if (!process)
        return w->wakes;
    /* Several threads may write this at the same time: a guess anyway. */
    u32 lately = process->bulk;
    if (is_new)
        lately -= (lately + 7) / 8;
    if (lately < w->wakes)
        lately = w->wakes;
    if (lately != process->bulk)
        process->bulk = lately;
    return lately;
}

/* Return whether the woken thread p, one of a bulk, stays on the CPU where it ran last. */
static bool stays_on_prev(struct task_struct *p, s32 prev_cpu, u32 bulk)
{
    u32 allowed = scx(p)->nr_cpus_allowed;
    if (allowed > nr_cpus)
        allowed = nr_cpus;
    if (allowed < 2 || bulk < allowed || !may_run(p, prev_cpu))
        return false;
    return (u32)scx_bpf_dsq_nr_queued(run_dsq(prev_cpu)) + 1 < (bulk + allowed - 1) / allowed;
}

s32 BPF_STRUCT_OPS(lissom_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    u32 bulk = nr_cpus < 2 || wake_flags & SCX_WAKE_FORK ? 0 : note_wakeup();
    /* If all CPUs are busy there is nothing to search for, and the search is expensive: it takes
     * the cache lines of all. */
    if (!any_idle())
        return prev_cpu;
    bool is_idle = false;
    s32 cpu = prev_cpu;
    if (stays_on_prev(p, prev_cpu, bulk)) {
        is_idle = scx_bpf_test_and_clear_cpu_idle(prev_cpu);
        struct cpu_ctx *c = try_lookup_cpu_ctx(prev_cpu);
        if (!is_idle && c) {
            COUNT(bulk_stays);
            c->has_stays = true;
        }
    } else {
        cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
    }
    if (is_idle) {
        COUNT(idle_picks);
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    }
    return cpu;
}

/* Wake an idle CPU to steal, if threads of a bulk wake-up wait in RUN. Pre: this CPU has just taken
 * a thread from RUN. */
static void wake_thief(s32 cpu, struct cpu_ctx *c)
{
    if (!c->has_stays)
        return;
    if (scx_bpf_dsq_nr_queued(run_dsq(cpu)) <= 0) {
        c->has_stays = false;
        return;
    }
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    if (!bpf_cpumask_empty(idle))
        kick_idle_cpu(idle);
    scx_bpf_put_idle_cpumask(idle);
}
