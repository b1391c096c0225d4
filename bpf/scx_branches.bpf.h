/* SPDX-License-Identifier: GPL-2.0 */
/* Detect threads in loops by the CPU's last-branch records and its counts of misses, if the
 * hardware has them. This adds to the registers of scx_spin.bpf.h. Registers never repeat if one of
 * them counts, or backs off; such loops become suspects here. A loop that is proven to wait is
 * recognized at any of its instructions, in any frame.
 *
 * The records only make a suspect. In the paper such a thread yields at once. But code that
 * computes in registers, or in memory that its caches hold, looks the same. So the tool has to
 * prove first that the thread waits.
 *
 * On each CPU the tool keeps an event open that has the CPU record the branches of user code, and
 * counts of misses. The scan itself reads the records, by bpf_get_branch_snapshot(): the interrupt
 * and this program leave none, as they are not user code. A sampling event with records
 * (bpf_read_branch_records) would interrupt every so many cycles instead of ns, by NMI. It would
 * read all records each time, before a program can say that no thread wants the CPU. Only such
 * events work with AMD's BRS, which has no snapshots. */
#pragma once

#include "scx_state.bpf.h"
#include "scx_spin.bpf.h"
#include "scx_tunables.bpf.h"
#include "scx_branches.h"

enum {
    /* per CPU: the event that keeps the records filled, L1D misses, dTLB misses
     * (crates/scx/src/branches.rs) */
    COUNTERS = 3,
    ALL_COUNTERS = COUNTERS * MAX_CPUS,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(max_entries, ALL_COUNTERS);
    __type(key, u32);
    __type(value, u32);
} scx_counters SEC(".maps");

struct branch_cpu {
    struct branch_scan last;
    struct branch branches[MOST_BRANCHES];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct branch_cpu);
} branch_cpus SEC(".maps");

struct scx_trial trial SEC(".bss.trial");

static bool count(u32 which, u64 *value, u64 *blind_ns)
{
    struct bpf_perf_event_value v = {};
    u32 at = bpf_get_smp_processor_id() * COUNTERS + which;
    if (bpf_perf_event_read_value(&scx_counters, at, &v, sizeof(v)))
        return false;
    *value = v.counter;
    *blind_ns += v.enabled - v.running;
    return true;
}

/* Read the state of this CPU, on which p runs. */
static __always_inline void scan_now(struct branch_scan *now, struct task_struct *p)
{
    u64 cycles;
    *now = (struct branch_scan){.thread = p->pid, .switches = nr_switches(p)};
    if (!count(0, &cycles, &now->blind_ns) || !count(1, &now->l1d_misses, &now->blind_ns) ||
        !count(2, &now->dtlb_misses, &now->blind_ns))
        now->thread = 0;
}

typedef enum branch_interval (*branch_rule)(const struct branch_scan *, const struct branch_scan *);

/* Classify the interval since the last scan of this CPU by the rule. Inlined: BPF has no calls by
 * pointer. */
static __always_inline enum branch_interval since_last(struct branch_cpu *b, struct task_struct *p,
                                                       branch_rule rule)
{
    struct branch_scan now;
    scan_now(&now, p);
    enum branch_interval interval = rule(&b->last, &now);
    b->last = now;
    return interval;
}

/* Read the records. Returns their number, or a negative errno. */
static s32 read_branches(struct branch_cpu *b, u64 ip)
{
    if (made_up) {
        for (int i = 0; i < LEAST_BRANCHES; i++)
            b->branches[i] = (struct branch){.from = (ip & ~63ULL) + 64, .to = ip & ~63ULL};
        return LEAST_BRANCHES;
    }
    s32 bytes = bpf_get_branch_snapshot(b->branches, sizeof(b->branches), 0);
    return bytes < 0 ? bytes : bytes / (s32)sizeof(struct branch);
}

static u64 loop_now(struct branch_cpu *b, u64 ip)
{
    s32 n = read_branches(b, ip);
    return n > 0 ? branch_loop(b->branches, n, ip) : 0;
}

static struct branch_cpu *branch_cpu(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&branch_cpus, &zero);
}

/* Read the thread's records ever more rarely: that takes microseconds, and they show no loop, or
 * one of which nothing is proven. */
static void back_off(struct scan_state *s)
{
    if (s->backoff < backoff_scans)
        s->backoff = s->backoff * 2 + 1;
    s->skip = s->backoff;
}

/* Return the site of the loop in which the thread waits, if that is proven, or NULL. */
static struct scx_site_info *spins_by_branches(struct scan_state *s, const struct pt_regs_x86 *r,
                                               struct task_struct *p)
{
    struct branch_cpu *b = branch_cpu();
    if (!b)
        return NULL;
    enum branch_interval interval = since_last(b, p, branch_interval);
    if (interval == BRANCHES_MISSED)
        s->loops = 0;
    /* The thread has just come to the CPU. If it is back in the loop where it was preempted, that
     * suffices, as for the registers. */
    bool is_back = interval == BRANCHES_UNKNOWN && s->left_loop;
    if (interval != BRANCHES_QUIET && !is_back)
        return NULL;
    if (interval == BRANCHES_QUIET && s->skip) {
        s->skip--;
        return NULL;
    }
    u64 loop = loop_now(b, r->ip);
    if (is_back && loop != s->left_loop) {
        s->left_loop = 0;
        return NULL;
    }
    if (!loop) {
        s->loops = 0;
        back_off(s);
        return NULL;
    }
    s->loops = loop == s->loop ? s->loops + 1 : 1;
    s->loop = loop;
    struct scx_site site = {.ip = loop, .pid = p->tgid};
    struct scx_site_info *info = proven_site(&site, r, p, s->loops);
    if (info) {
        s->left_loop = loop;
        s->backoff = 0;
        note_progress(s, data_of(r));
    } else if (s->loops >= suspect_scans) {
        back_off(s);
    }
    return info;
}

/* Test the records before anything is scheduled: the tool runs a loop that they have to show.
 * Attached to its thread alone. */
SEC("perf_event")
int try_branches(struct bpf_perf_event_data *event)
{
    struct pt_regs_x86 *r = &event->regs;
    struct branch_cpu *b = branch_cpu();
    if (!b || !is_user(r))
        return 0;
    trial.looks++;
    enum branch_interval interval = since_last(b, bpf_get_current_task_btf(), branch_interval);
    if (b->last.thread)
        trial.counted++;
    if (interval == BRANCHES_QUIET)
        trial.quiet++;
    s32 n = read_branches(b, r->ip);
    if (n < 0)
        trial.error = n;
    else if (n >= LEAST_BRANCHES)
        trial.full++;
    if (interval == BRANCHES_QUIET && n > 0 && branch_loop(b->branches, n, r->ip))
        trial.loops++;
    return 0;
}
