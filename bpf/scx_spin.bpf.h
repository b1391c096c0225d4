/* SPDX-License-Identifier: GPL-2.0 */
/* Detect threads that wait in loops, after Huang et al., HPDC'21, section 3.2. The paper's
 * last-branch records, which virtual machines seldom have, are in scx_branches.bpf.h.
 *
 * A perf event interrupts each CPU at an interval (`--sample`). If all registers of a thread are as
 * at an earlier scan, it has only done what it can undo since then. It waits in a loop, or it
 * counts in memory alone. So such a place is sent once to the tool, which proves one or the other
 * from the code (src/judge). From then on, a thread found there in an earlier state is preempted,
 * if another one wants its CPU.
 *
 * States outlast the thread's time off the CPU. So if it still waits for the same word when it runs
 * again, the first scan finds it. The first scan also finds a thread that waits at the same place,
 * in the same frame, for the next value. A loop that provably ends at once when its word changes
 * needs no other evidence, and a mistake only costs a turn. */
#pragma once

#include "scx_state.bpf.h"
#include "scx_tunables.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct scx_site);
    __type(value, struct scx_site_info);
} scx_sites SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 256 * 1024);
} scx_candidates SEC(".maps");

enum {
    FLAGS = 0x8d5, /* of rflags: arithmetic flags */
};

#define MIX(hash, value) ((((hash) << 5 | (hash) >> 59) ^ (value)) * 0x9e3779b97f4a7c15ULL)

static u64 data_of(const struct pt_regs_x86 *r)
{
    u64 h = r->ax;
    h = MIX(h, r->bx), h = MIX(h, r->cx), h = MIX(h, r->dx);
    h = MIX(h, r->si), h = MIX(h, r->di), h = MIX(h, r->bp), h = MIX(h, r->sp);
    h = MIX(h, r->r8), h = MIX(h, r->r9), h = MIX(h, r->r10), h = MIX(h, r->r11);
    h = MIX(h, r->r12), h = MIX(h, r->r13), h = MIX(h, r->r14), h = MIX(h, r->r15);
    return h;
}

static u64 state_of(const struct pt_regs_x86 *r, u64 data)
{
    return MIX(MIX(data, r->ip), r->flags & FLAGS) ?: 1;
}

/* Return whether the thread was in this state before; otherwise remember the state. */
static bool seen_before(struct looked *l, u64 state)
{
    for (int i = 0; i < STATES; i++)
        if (l->state[i] == state) {
            l->seen++;
            return true;
        }
    l->state[l->next++ % STATES] = state;
    l->seen = 0;
    return false;
}

static u64 place_of(const struct pt_regs_x86 *r) { return MIX(r->ip, r->sp); }

static bool was_place(const struct looked *l, u64 place)
{
    for (int i = 0; i < PLACES; i++)
        if (l->place[i] == place)
            return true;
    return false;
}

static void suspect(const struct scx_site *site, const struct pt_regs_x86 *r, u32 thread, u64 seen)
{
    struct scx_candidate *c = bpf_ringbuf_reserve(&scx_candidates, sizeof(*c), 0);
    if (!c)
        return;
    c->site = *site;
    c->thread = thread;
    c->pad = 0;
    c->seen = seen;
    u64 *to = c->registers;
    to[0] = r->ax, to[1] = r->bx, to[2] = r->cx, to[3] = r->dx, to[4] = r->si, to[5] = r->di,
    to[6] = r->bp, to[7] = r->sp;
    to[8] = r->r8, to[9] = r->r9, to[10] = r->r10, to[11] = r->r11, to[12] = r->r12,
    to[13] = r->r13, to[14] = r->r14, to[15] = r->r15;
    to[16] = r->ip, to[17] = r->flags;
    bpf_ringbuf_submit(c, 0);
}

/* Return what is known of the site if threads provably wait there, otherwise NULL. Asks the tool if
 * the site was seen often enough, and is undecided. */
static struct scx_site_info *proven(const struct scx_site *site, const struct pt_regs_x86 *r,
                                    const struct task_struct *p, u32 seen)
{
    struct scx_site_info *info = bpf_map_lookup_elem(&scx_sites, site);
    if (info && info->verdict == SCX_SPINS)
        return info;
    if (seen < suspect_scans || (info && info->verdict == SCX_WORKS))
        return NULL;
    if (info) {
        /* The candidate was lost, or could not be decided as it was then: ask again, ever more
         * rarely. */
        u64 times = ++info->seen;
        if (times & (times - 1))
            return NULL;
    } else {
        struct scx_site_info new = {.seen = 1};
        bpf_map_update_elem(&scx_sites, site, &new, BPF_NOEXIST);
    }
    suspect(site, r, p->pid, seen);
    return NULL;
}

/* Return the site where the thread waits, if that is proven, or NULL. */
static struct scx_site_info *waits_at(struct looked *l, const struct pt_regs_x86 *r,
                                      const struct task_struct *p)
{
    u64 place = place_of(r), data = data_of(r);
    bool same = seen_before(l, state_of(r, data)), there = was_place(l, place);
    if (!same && !there)
        return NULL;
    struct scx_site site = {.ip = r->ip, .pid = p->tgid};
    struct scx_site_info *info = proven(&site, r, p, l->seen);
    if (!info)
        return NULL;
    if (!there)
        l->place[l->next_place++ % PLACES] = place;
    l->is_new = l->data != data;
    l->data = data;
    return info;
}
