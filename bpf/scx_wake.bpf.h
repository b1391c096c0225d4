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

static bool any_idle(void)
{
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    bool any = !bpf_cpumask_empty(idle);
    scx_bpf_put_idle_cpumask(idle);
    return any;
}

/* Note a wake-up; called by the waker for each. Returns the number of threads that it wakes at
 * once: those so far, or what its process woke recently, if that is more. */
static u32 burst(void)
{
    struct task_struct *waker = bpf_get_current_task_btf();
    struct thread *w = thread_of(waker);
    if (!w)
        return 0;
    struct task_struct *leader = scx(waker)->group_leader;
    struct thread *process = leader ? thread_of(leader) : NULL;
    u64 now = scx_bpf_now();
    u64 switches = scx(waker)->nvcsw + scx(waker)->nivcsw;
    bool is_new = now - w->woke_at > bulk_gap_ns || w->woke_switches != switches;
    w->woke_at = now;
    w->woke_switches = switches;
    w->wakes = is_new ? 1 : w->wakes + 1;
    if (!process)
        return w->wakes;
    /* Several threads may write this at the same time: a guess anyway. */
    u32 lately = process->burst;
    if (is_new)
        lately -= (lately + 7) / 8;
    if (lately < w->wakes)
        lately = w->wakes;
    if (lately != process->burst)
        process->burst = lately;
    return lately;
}

/* Return whether the woken thread p, one of `burst`, stays on the CPU where it ran last. */
static bool stays(struct task_struct *p, s32 previous, u32 burst)
{
    u32 allowed = scx(p)->nr_cpus_allowed;
    if (allowed > nr_cpus)
        allowed = nr_cpus;
    if (allowed < 2 || burst < allowed || !may_run(p, previous))
        return false;
    return (u32)scx_bpf_dsq_nr_queued(RUN(previous)) + 1 < (burst + allowed - 1) / allowed;
}

SEC("struct_ops/lissom_select_cpu")
s32 BPF_PROG(lissom_select_cpu, struct task_struct *p, s32 previous, u64 flags)
{
    u32 woken = nr_cpus < 2 || flags & SCX_WAKE_FORK ? 0 : burst();
    /* If all CPUs are busy there is nothing to search for, and the search is expensive: it takes
     * the cache lines of all. */
    if (!any_idle())
        return previous;
    bool is_idle = false;
    s32 cpu = previous;
    if (stays(p, previous, woken)) {
        is_idle = scx_bpf_test_and_clear_cpu_idle(previous);
        struct cpu *c = cpu_at(previous);
        if (!is_idle && c) {
            COUNT(bulk_stays);
            c->has_stays = true;
        }
    } else {
        cpu = scx_bpf_select_cpu_dfl(p, previous, flags, &is_idle);
    }
    if (is_idle) {
        COUNT(idle_picks);
        insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    }
    return cpu;
}

/* Wake an idle CPU to steal, if threads of a bulk wake-up wait in RUN. Pre: this CPU has just taken
 * a thread from RUN. */
static void wake_thief(s32 cpu, struct cpu *c)
{
    if (!c->has_stays)
        return;
    if (scx_bpf_dsq_nr_queued(RUN(cpu)) <= 0) {
        c->has_stays = false;
        return;
    }
    const struct cpumask *idle = scx_bpf_get_idle_cpumask();
    s32 thief = bpf_cpumask_empty(idle) ? -1 : scx_bpf_pick_idle_cpu(idle, 0);
    scx_bpf_put_idle_cpumask(idle);
    if (thief >= 0)
        scx_bpf_kick_cpu(thief, SCX_KICK_IDLE);
}
