/* SPDX-License-Identifier: GPL-2.0 */
/* Scans of running threads, requested by a clock of each CPU (src/sched/looks.rs). A thread that is
 * found waiting is preempted. scx_spin.bpf.h, scx_branches.bpf.h and scx_vcpu.bpf.h have the
 * detection. */
#pragma once

#include "scx_branches.bpf.h"
#include "scx_queues.bpf.h"
#include "scx_spin.bpf.h"
#include "scx_tunables.bpf.h"
#include "scx_vcpu.bpf.h"

/* Return whether this scheduler runs p. Threads of other classes run before its threads, or beside
 * them. */
static bool is_scheduled_here(struct task_struct *p)
{
    u32 policy = scx(p)->policy;
    if (is_partial)
        return policy == SCHED_EXT;
    return policy != SCHED_FIFO && policy != SCHED_RR && policy != SCHED_DEADLINE;
}

/* Preempt the running thread t, which waits although another one wants its CPU: it enters SPIN. */
static __always_inline void give_way(struct bpf_perf_event_data *event, struct thread *t,
                                     struct scx_counts *n, s32 cpu)
{
    n->spin_kicks++;
    n->spin_ns += event->sample_period;
    t->aside = true;
    scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Scan the running thread, which may be any: by registers (scx_spin.bpf.h) and, if by_branches, by
 * branch records (scx_branches.bpf.h). */
static __always_inline int look_at(struct bpf_perf_event_data *event, bool by_branches)
{
    struct pt_regs_x86 *r = &event->regs;
    struct thread *t = NULL;
    bool is_vcpu = (r->cs & 3) != 3;
    if (is_vcpu && !(t = spinning_vcpu()))
        return 0;
    s32 cpu = bpf_get_smp_processor_id();
    struct cpu *c = cpu_at(cpu);
    if (!c || (!c->aside && scx_bpf_dsq_nr_queued(RUN(cpu)) <= 0))
        return 0;
    struct task_struct *p = bpf_get_current_task_btf();
    if (!is_scheduled_here(p))
        return 0;
    if (!t)
        t = thread_of(p);
    struct scx_counts *n = counts();
    /* A vCPU thread may already be about to yield, by KVM's directed yield, but it leaves no sooner
     * than at the next tick. */
    if (!t || !n || (t->aside && !is_vcpu))
        return 0;
    n->samples++;
    if (is_vcpu) {
        n->vcpu_kicks++;
    } else {
        struct scx_site_info *site = by_branches && made_up ? NULL : waits_at(&t->looked, r, p);
        if (!site && by_branches) {
            site = loops_at(&t->looked, r, p);
            if (site)
                n->branch_kicks++;
        }
        if (!site)
            return 0;
        site->kicks++;
    }
    give_way(event, t, n, cpu);
    return 0;
}

/* One of these two, or look_paper, is attached. */
SEC("perf_event")
int look(struct bpf_perf_event_data *event) { return look_at(event, false); }

SEC("perf_event")
int look_branches(struct bpf_perf_event_data *event) { return look_at(event, true); }
