/* SPDX-License-Identifier: GPL-2.0 */
/* Operations of cgroups: they come and go, threads move between them, and their weights and limits
 * change. scx_shares.bpf.h has the meaning of the weights. */
#pragma once

#include "scx_shares.bpf.h"
#include "scx_state.bpf.h"
#include "scx_tunables.bpf.h"

static bool has_limit(u64 quota_us) { return quota_us && quota_us < ~0ULL / 1000; }

s32 BPF_STRUCT_OPS_SLEEPABLE(lissom_cgroup_init, struct cgroup *cgroup,
                             struct scx_cgroup_init_args *args)
{
    group_add(cgroup, args->weight);
    return 0;
}

void BPF_STRUCT_OPS_SLEEPABLE(lissom_cgroup_exit, struct cgroup *cgroup) { group_remove(cgroup); }

void BPF_STRUCT_OPS(lissom_cgroup_move, struct task_struct *p, struct cgroup *from,
                    struct cgroup *to)
{
    struct task_ctx *t = try_lookup_task_ctx(p);
    if (!t)
        return;
    u32 group = group_of(to);
    if (t->counted) {
        group_add_load(t->group, t->counted, -1);
        group_add_load(group, t->counted, 1);
    }
    t->group = group;
}

void BPF_STRUCT_OPS(lissom_cgroup_set_weight, struct cgroup *cgroup, u32 weight)
{
    group_set_weight(cgroup, weight);
}

/* End the scheduler: the kernel does not enforce cpu.max under sched_ext, and a limit that does
 * nothing helps no user. */
void BPF_STRUCT_OPS(lissom_cgroup_set_bandwidth, struct cgroup *cgroup, u64 period_us, u64 quota_us,
                    u64 burst_us)
{
    /* The limit holds for threads of other schedulers; the tool checks the cgroups of this
     * one's. */
    if (has_limit(quota_us) && !ignore_limits && !is_partial)
        scx_bpf_exit(SCX_EXIT_CODE_LIMIT, "a cgroup got a cpu.max");
}
