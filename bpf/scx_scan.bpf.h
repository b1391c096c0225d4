/* SPDX-License-Identifier: GPL-2.0 */
/* Scans of running threads, requested by a clock of each CPU (crates/scx/src/looks.rs). A thread
 * that is found waiting is preempted. scx_spin.bpf.h, scx_branches.bpf.h and scx_vcpu.bpf.h have
 * the detection. */
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
static __always_inline void preempt_spinner(struct bpf_perf_event_data *event, struct task_ctx *t,
                                            struct scx_counts *n, s32 cpu)
{
    n->spin_kicks++;
    n->spin_ns += event->sample_period;
    t->is_spinning = true;
    scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Scan the running thread, which may be any: by registers (scx_spin.bpf.h) and, if by_branches, by
 * branch records (scx_branches.bpf.h). */
static __always_inline int scan_thread(struct bpf_perf_event_data *event, bool by_branches)
{
    struct pt_regs_x86 *r = &event->regs;
    struct task_ctx *t = NULL;
    bool is_vcpu = !is_user(r);
    if (is_vcpu && !(t = spinning_vcpu()))
        return 0;
    s32 cpu = bpf_get_smp_processor_id();
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    if (!c || !is_wanted(cpu, c))
        return 0;
    struct task_struct *p = bpf_get_current_task_btf();
    if (!is_scheduled_here(p))
        return 0;
    if (!t)
        t = try_lookup_task_ctx(p);
    struct scx_counts *n = counts();
    /* A vCPU thread may already be about to yield, by KVM's directed yield, but it leaves no sooner
     * than at the next tick. */
    if (!t || !n || (t->is_spinning && !is_vcpu))
        return 0;
    n->samples++;
    if (is_vcpu) {
        n->vcpu_kicks++;
    } else {
        struct scx_site_info *site = NULL;
        if (!by_branches || !made_up)
            site = spins_by_registers(&t->scan, r, p);
        if (!site && by_branches) {
            site = spins_by_branches(&t->scan, r, p);
            if (site)
                n->branch_kicks++;
        }
        if (!site)
            return 0;
        site->kicks++;
    }
    preempt_spinner(event, t, n, cpu);
    return 0;
}

/* One of these two, or scan_paper, is attached. */
SEC("perf_event")
int scan_registers(struct bpf_perf_event_data *event) { return scan_thread(event, false); }

SEC("perf_event")
int scan_branches(struct bpf_perf_event_data *event) { return scan_thread(event, true); }
