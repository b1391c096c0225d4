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
    struct bpf_iter_scx_dsq it;
    bool settled = false;
    *any = false;
    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        struct task_struct *p = bpf_iter_scx_dsq_next(&it);
        struct thread *t = p ? thread_of(p) : NULL;
        settled = t && now - t->moved >= settle_ns;
        *any = p;
    }
    bpf_iter_scx_dsq_destroy(&it);
    return settled && take(queue);
}

/* Take a thread from another CPU. Returns false if there is none. Pre: this CPU has nothing to
 * run. */
static bool steal(s32 cpu)
{
    u64 now = scx_bpf_now();
    u32 words = (nr_cpus + 63) / 64, own = (u32)cpu / 64, i, j;
    bpf_for(i, 0, words) {
        u32 word = (own + i) % words;
        u64 bits = waiting[word % WORDS];
        if (!bits)
            continue;
        /* Start from the next one, so that not all go to the same. */
        bpf_for(j, 1, 65) {
            u32 bit = (cpu + j) % 64, other = word * 64 + bit;
            if (!(bits & 1ULL << bit) || other == (u32)cpu)
                continue;
            bool runs, spins = false;
            struct cpu *o = cpu_at(other);
            if (steal_from(RUN(other), now, &runs) ||
                (o && o->aside && steal_from(SPIN(other), now, &spins)))
                return true;
            if (!runs && !spins)
                note_empty(other);
        }
    }
    return false;
}

/* Take a thread from a longer queue. Otherwise threads that never sleep, and so are never woken
 * elsewhere, would stay where they are. */
static bool balance(s32 cpu, struct cpu *c)
{
    u64 now = scx_bpf_now();
    if (nr_cpus < 2 || now - c->balanced < balance_ns)
        return false;
    c->balanced = now;
    u32 other = c->probe++ % nr_cpus;
    if (other == (u32)cpu)
        other = c->probe++ % nr_cpus;
    struct cpu *o = cpu_at(other);
    /* No other CPU runs what an offline CPU has left behind. */
    if (o && o->is_off)
        return take(RUN(other)) || take(SPIN(other));
    return scx_bpf_dsq_nr_queued(RUN(other)) > scx_bpf_dsq_nr_queued(RUN(cpu)) + 1 &&
           take(RUN(other));
}
