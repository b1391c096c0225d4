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
 * On each CPU the loader keeps an event open that has the CPU record the branches of user code, and
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
     * (src/sched/branches.rs) */
    COUNTERS = 3,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(max_entries, COUNTERS *MAX_CPUS);
    __type(key, u32);
    __type(value, u32);
} scx_counters SEC(".maps");

struct branch_cpu {
    struct branch_look last;
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
static __always_inline void look_now(struct branch_look *now, struct task_struct *p)
{
    u64 cycles;
    *now = (struct branch_look){.thread = p->pid, .switches = scx(p)->nvcsw + scx(p)->nivcsw};
    if (!count(0, &cycles, &now->blind_ns) || !count(1, &now->l1d_misses, &now->blind_ns) ||
        !count(2, &now->dtlb_misses, &now->blind_ns))
        now->thread = 0;
}

/* Classify the interval since the last scan of this CPU. */
static enum branch_interval since_last(struct branch_cpu *b, struct task_struct *p)
{
    struct branch_look now;
    look_now(&now, p);
    enum branch_interval interval = branch_interval(&b->last, &now);
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
static void rest(struct looked *l)
{
    if (l->pause < backoff_scans)
        l->pause = l->pause * 2 + 1;
    l->rest = l->pause;
}

/* Return the site of the loop in which the thread waits, if that is proven, or NULL. */
static struct scx_site_info *loops_at(struct looked *l, const struct pt_regs_x86 *r,
                                      struct task_struct *p)
{
    struct branch_cpu *b = branch_cpu();
    if (!b)
        return NULL;
    enum branch_interval interval = since_last(b, p);
    if (interval == BRANCHES_MISSED)
        l->loops = 0;
    /* The thread has just come to the CPU. If it is back in the loop where it was preempted, that
     * suffices, as for the registers. */
    bool is_back = interval == BRANCHES_UNKNOWN && l->left_loop;
    if (interval != BRANCHES_QUIET && !is_back)
        return NULL;
    if (interval == BRANCHES_QUIET && l->rest) {
        l->rest--;
        return NULL;
    }
    u64 loop = loop_now(b, r->ip);
    if (is_back && loop != l->left_loop) {
        l->left_loop = 0;
        return NULL;
    }
    if (!loop) {
        l->loops = 0;
        rest(l);
        return NULL;
    }
    l->loops = loop == l->loop ? l->loops + 1 : 1;
    l->loop = loop;
    struct scx_site site = {.ip = loop, .pid = p->tgid};
    struct scx_site_info *info = proven(&site, r, p, l->loops);
    if (info) {
        u64 data = data_of(r);
        l->left_loop = loop;
        l->pause = 0;
        l->is_new = l->data != data;
        l->data = data;
    } else if (l->loops >= suspect_scans) {
        rest(l);
    }
    return info;
}

/* Test the records before anything is scheduled: the loader runs a loop that they have to show.
 * Attached to its thread alone. */
SEC("perf_event")
int try_branches(struct bpf_perf_event_data *event)
{
    struct pt_regs_x86 *r = &event->regs;
    struct branch_cpu *b = branch_cpu();
    if (!b || (r->cs & 3) != 3)
        return 0;
    trial.looks++;
    enum branch_interval interval = since_last(b, bpf_get_current_task_btf());
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
