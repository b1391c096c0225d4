/* SPDX-License-Identifier: GPL-2.0 */
/* Detect threads that wait in loops, after Huang et al., HPDC'21, section 3.2. The paper's
 * last-branch records, which virtual machines seldom have, are in scx_branches.bpf.h.
 *
 * A perf event interrupts each CPU at an interval (`--sample`). If all registers of a thread are as
 * at an earlier scan, it has only done what it can undo since then. It waits in a loop, or it
 * counts in memory alone. So such a place is sent once to the tool, which proves one or the other
 * from the code (crates/judge). From then on, a thread found there in an earlier state is
 * preempted, if another one wants its CPU.
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

enum { ARITHMETIC_FLAGS = 0x8d5 }; /* of rflags */

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
    return MIX(MIX(data, r->ip), r->flags & ARITHMETIC_FLAGS) ?: 1;
}

/* Return whether the thread was in this state before; otherwise remember the state. */
static bool seen_before(struct scan_state *s, u64 state)
{
    for (int i = 0; i < STATES; i++)
        if (s->state[i] == state) {
            s->seen++;
            return true;
        }
    s->state[s->next++ % STATES] = state;
    s->seen = 0;
    return false;
}

static u64 place_of(const struct pt_regs_x86 *r) { return MIX(r->ip, r->sp); }

static bool was_place(const struct scan_state *s, u64 place)
{
    for (int i = 0; i < PLACES; i++)
        if (s->place[i] == place)
            return true;
    return false;
}

/* Let the tool examine the site, where the thread was seen so many times. */
static void send_candidate(const struct scx_site *site, const struct pt_regs_x86 *r, u32 thread,
                           u64 seen)
{
    struct scx_candidate *c = bpf_ringbuf_reserve(&scx_candidates, sizeof(*c), 0);
    if (!c)
        return;
    c->site = *site;
    c->thread = thread;
    c->pad = 0;
    c->seen = seen;
    u64 *to = c->registers;
    to[0] = r->ax, to[1] = r->bx, to[2] = r->cx, to[3] = r->dx;
    to[4] = r->si, to[5] = r->di, to[6] = r->bp, to[7] = r->sp;
    to[8] = r->r8, to[9] = r->r9, to[10] = r->r10, to[11] = r->r11;
    to[12] = r->r12, to[13] = r->r13, to[14] = r->r14, to[15] = r->r15;
    to[16] = r->ip, to[17] = r->flags;
    bpf_ringbuf_submit(c, 0);
}

/* Return the entry of the site; adds one if there is none. Returns NULL if the map is full. */
static struct scx_site_info *get_site(const struct scx_site *site)
{
    struct scx_site_info *info = bpf_map_lookup_elem(&scx_sites, site), new = {};
    if (info)
        return info;
    bpf_map_update_elem(&scx_sites, site, &new, BPF_NOEXIST);
    return bpf_map_lookup_elem(&scx_sites, site);
}

/* True for 1, 2, 4, 8 ... The tool is asked for a verdict at these times: ever more rarely, since
 * some sites cannot be decided, and a candidate may be lost. */
static bool is_power_of_two(u64 n) { return !(n & (n - 1)); }

/* Return the entry of the site if threads provably wait there, otherwise NULL. Asks the tool if the
 * site was seen in enough scans in a row, and is undecided. */
static struct scx_site_info *proven_site(const struct scx_site *site, const struct pt_regs_x86 *r,
                                         const struct task_struct *p, u32 seen)
{
    struct scx_site_info *info = bpf_map_lookup_elem(&scx_sites, site);
    if (info && info->verdict == SCX_SPINS)
        return info;
    if (seen < suspect_scans || (info && info->verdict == SCX_WORKS))
        return NULL;
    info = get_site(site);
    if (!info || is_power_of_two(++info->seen))
        send_candidate(site, r, p->pid, seen);
    return NULL;
}

/* Note the registers of a thread that is to be preempted. */
static void note_progress(struct scan_state *s, u64 data)
{
    s->is_new = s->data != data;
    s->data = data;
}

/* Return the site where the thread waits, if that is proven, or NULL. */
static struct scx_site_info *spins_by_registers(struct scan_state *s, const struct pt_regs_x86 *r,
                                                const struct task_struct *p)
{
    u64 place = place_of(r), data = data_of(r);
    bool same = seen_before(s, state_of(r, data)), there = was_place(s, place);
    if (!same && !there)
        return NULL;
    struct scx_site site = {.ip = r->ip, .pid = p->tgid};
    struct scx_site_info *info = proven_site(&site, r, p, s->seen);
    if (!info)
        return NULL;
    if (!there)
        s->place[s->next_place++ % PLACES] = place;
    note_progress(s, data);
    return info;
}
