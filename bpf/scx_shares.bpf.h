/* SPDX-License-Identifier: GPL-2.0 */
/* A thread's share of the machine, by its nice value and the weights of its cgroups. As in the
 * kernel's own scheduler, a cgroup competes with the cgroups and threads beside it as one, however
 * many threads it has. The hierarchy is flattened, as in the kernel's tools/sched_ext/scx_flatcg:
 * the smaller a thread's share, the faster its virtual time grows.
 *
 * Each group has the sum of the weights of all that is runnable directly in it. A sum that becomes
 * 0 removes the group from its parent's sum; one that leaves 0 adds it. So a wake-up in a group
 * that is busy anyway costs one addition. CPUs change the sums without a lock. Crossing changes
 * settle, but a weight that changes just then may count wrongly until the group has been idle
 * once. */
#pragma once

#include "scx.h"
#include "scx_tunables.bpf.h"

enum {
    GROUPS = 4096, /* the first one is the root; further groups count as the root */
    LEVELS = 16,   /* deeper groups compete on the last one */
    WEIGHT = 100,  /* the default */
    SHARE_ONE = 1 << 16,
};

struct group {
    s64 load; /* sum of the weights of all that is runnable in it */
    u64 id;   /* the cgroup's; 0: unused */
    u32 weight;
    u32 counted; /* its weight in its parent's load now */
    u32 parent;  /* index */
    u32 share;   /* SHARE_ONE: its threads of weight 100 count like those in the root */
    u64 share_at;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, GROUPS);
    __type(key, u32);
    __type(value, struct group);
} groups SEC(".maps");

/* Index by a cgroup's id. Not stored with the cgroup itself: that of a new thread may only be
 * read. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, GROUPS);
    __type(key, u64);
    __type(value, u32);
} group_index SEC(".maps");

static struct group *group_at(u32 index) { return bpf_map_lookup_elem(&groups, &index); }

static u32 group_of(struct cgroup *cgroup)
{
    if (!cgroup)
        return 0;
    u64 id = BPF_CORE_READ(cgroup, kn, id);
    u32 *index = bpf_map_lookup_elem(&group_index, &id);
    return index ? *index : 0;
}

static void group_add(struct cgroup *cgroup, u32 weight)
{
    if (cgroup->level == 0)
        return;
    u64 id = cgroup->kn->id;
    u32 parent = 0;
    struct cgroup *above = bpf_cgroup_ancestor(cgroup, cgroup->level - 1);
    if (above) {
        parent = group_of(above);
        bpf_cgroup_release(above);
    }
    u32 i;
    bpf_for(i, 1, GROUPS) {
        struct group *g = group_at(i);
        if (!g)
            return;
        if (g->id || __sync_val_compare_and_swap(&g->id, 0, id))
            continue;
        g->load = 0;
        g->counted = 0;
        g->weight = weight ?: WEIGHT;
        g->parent = parent;
        g->share_at = 0;
        bpf_map_update_elem(&group_index, &id, &i, BPF_ANY);
        return;
    }
}

static void group_remove(struct cgroup *cgroup)
{
    u64 id = cgroup->kn->id;
    u32 index = group_of(cgroup);
    struct group *g = group_at(index);
    bpf_map_delete_elem(&group_index, &id);
    if (g && index)
        g->id = 0;
}

static void group_set_weight(struct cgroup *cgroup, u32 weight)
{
    u32 index = group_of(cgroup);
    struct group *g = group_at(index);
    if (!g || !index)
        return;
    g->weight = weight;
    struct group *parent = group_at(g->parent);
    if (!parent || g->load <= 0)
        return;
    u32 before = __sync_lock_test_and_set(&g->counted, weight);
    __sync_fetch_and_add(&parent->load, (s64)weight - (s64)before);
}

/* A thread of this weight became runnable in the group (sign 1), or ceased to be (-1). */
static void group_add_load(u32 index, s64 weight, s64 sign)
{
    for (int level = 0; level < LEVELS; level++) {
        struct group *g = group_at(index);
        if (!g)
            return;
        s64 before = __sync_fetch_and_add(&g->load, sign * weight);
        bool changes = sign > 0 ? before == 0 : before == weight;
        if (!index || !changes)
            return;
        if (sign > 0)
            g->counted = g->weight;
        weight = g->counted;
        index = g->parent;
    }
}

/* Return the group's share, in SHARE_ONE: the product of its parts on all levels. */
static u32 group_share(u32 index, u64 now)
{
    struct group *g = group_at(index);
    if (!index || !g)
        return SHARE_ONE;
    if (now - g->share_at < share_ns)
        return g->share;
    u64 share = SHARE_ONE;
    struct group *at = g;
    for (int level = 0; level < LEVELS && index; level++) {
        s64 load = at->load;
        if (load > 0)
            share = share * at->weight / (u64)load;
        index = at->parent;
        at = group_at(index);
        if (!at)
            break;
    }
    if (share < SHARE_ONE / 1024)
        share = SHARE_ONE / 1024;
    if (share > SHARE_ONE * 1024ULL)
        share = SHARE_ONE * 1024ULL;
    g->share = share;
    g->share_at = now;
    return share;
}
