/* SPDX-License-Identifier: GPL-2.0 */
/* Virtual time. A thread's grows by its run time, divided by its share (scx_shares.bpf.h). A CPU's
 * is that of the thread that has come furthest there. */
#pragma once

#include "scx_queues.bpf.h"
#include "scx_shares.bpf.h"
#include "scx_state.bpf.h"
#include "scx_tunables.bpf.h"

/* Return the virtual time for running `ns`: the smaller the share, the longer. */
static u64 cost(const struct task_ctx *t, u64 ns)
{
    if (!t->group && t->counted == WEIGHT)
        return ns;
    u64 weight = (u64)(t->counted ?: WEIGHT) * group_share(t->group, scx_bpf_now()) / SHARE_ONE;
    return ns * WEIGHT / (weight ?: 1);
}

/* Move t's virtual time to the CPU c. t keeps its distance, but after a sleep it is ahead by
 * lead_slices at most. */
static void move_vtime(struct task_ctx *t, const struct cpu_ctx *c, s32 cpu)
{
    struct cpu_ctx *from = t->cpu >= 0 ? try_lookup_cpu_ctx(t->cpu) : NULL;
    if (!from) {
        t->vtime = c->now;
    } else if (from != c) {
        t->vtime += c->now - from->now;
        t->moved = scx_bpf_now();
    }
    t->cpu = cpu;
    u64 earliest = c->now - lead_slices * slice_ns;
    if (is_before(t->vtime, earliest))
        t->vtime = earliest;
}

/* Charge t for what it has run since the last time, on the CPU where it ran. */
static void charge(struct task_struct *p, struct task_ctx *t, struct cpu_ctx *c, s32 cpu)
{
    u64 ran = scx(p)->se.sum_exec_runtime;
    if (ran == t->charged)
        return;
    move_vtime(t, c, cpu);
    if (is_before(c->now, t->vtime))
        c->now = t->vtime;
    t->vtime += cost(t, ran - t->charged);
    t->charged = ran;
    t->guest_spins = false;
}

/* Return whether the running thread continues: it is still due more than the first of RUN. */
static bool keeps_cpu(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
    u64 first;
    if (!first_vtime(run_dsq(cpu), &first))
        return false;
    u64 vtime = t->vtime + cost(t, scx(p)->se.sum_exec_runtime - t->charged);
    return is_before(vtime, first);
}

/* Count t as runnable. Called here rather than in an operation of its own, for which every wake-up
 * would pay. */
static void count_runnable(struct task_struct *p, struct task_ctx *t)
{
    if (t->counted)
        return;
    COUNT(wakeups);
    t->counted = scx(p)->scx.weight ?: WEIGHT;
    group_add_load(t->group, t->counted, 1);
}

static void uncount_runnable(struct task_ctx *t)
{
    if (!t->counted)
        return;
    group_add_load(t->group, t->counted, -1);
    t->counted = 0;
}
