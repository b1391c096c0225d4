/* SPDX-License-Identifier: GPL-2.0 */
/* A CPU takes threads from the queues of other CPUs: when it has nothing to run, and at intervals
 * to even out their lengths. */
#pragma once

#include "scx_queues.bpf.h"
#include "scx_tunables.bpf.h"

/* Take the first thread of another CPU's queue. Returns false if none was taken. *any: there was
 * one, which may have to stay. */
static bool steal_from(u64 queue, u64 now, bool *any)
{
    struct task_struct *p;
    bool settled = false;

    *any = false;
    bpf_for_each(scx_dsq, p, queue, 0) {
        struct task_ctx *t = try_lookup_task_ctx(p);
        settled = t && now - t->moved >= settle_ns;
        *any = true;
        break;
    }
    return settled && scx_bpf_dsq_move_to_local(queue);
}

/* Take a thread from another CPU. Returns false if there is none. Pre: this CPU has nothing to
 * run. */
static bool steal(s32 cpu)
{
    u64 now = scx_bpf_now();
    u32 words = (nr_cpus + 63) / 64, own = (u32)cpu / 64, i, j;
    bpf_for(i, 0, words) {
        u32 word = (own + i) % words;
        u64 bits = queued_mask[word % WORDS];
        if (!bits)
            continue;
        /* Start from the next one, so that not all go to the same. */
        bpf_for(j, 1, 65) {
            u32 bit = (cpu + j) % 64, other = word * 64 + bit;
            if (!(bits & 1ULL << bit) || other == (u32)cpu)
                continue;
            bool runs, spins = false;
            struct cpu_ctx *o = try_lookup_cpu_ctx(other);
            if (steal_from(run_dsq(other), now, &runs) ||
                (o && o->has_spinning && steal_from(spin_dsq(other), now, &spins)))
                return true;
            if (!runs && !spins)
                mark_empty(other);
        }
    }
    return false;
}

/* Take a thread from a longer queue. Otherwise threads that never sleep, and so are never woken
 * elsewhere, would stay where they are. */
static bool balance(s32 cpu, struct cpu_ctx *c)
{
    u64 now = scx_bpf_now();
    if (nr_cpus < 2 || now - c->balanced < balance_ns)
        return false;
    c->balanced = now;
    u32 other = c->probe++ % nr_cpus;
    if (other == (u32)cpu)
        other = c->probe++ % nr_cpus;
    struct cpu_ctx *o = try_lookup_cpu_ctx(other);
    /* No other CPU runs what an offline CPU has left behind. */
    if (o && o->is_offline)
        return scx_bpf_dsq_move_to_local(run_dsq(other)) ||
               scx_bpf_dsq_move_to_local(spin_dsq(other));
    return scx_bpf_dsq_nr_queued(run_dsq(other)) > scx_bpf_dsq_nr_queued(run_dsq(cpu)) + 1 &&
           scx_bpf_dsq_move_to_local(run_dsq(other));
}
