/* SPDX-License-Identifier: GPL-2.0 */
/* The detector of Huang et al., HPDC'21, section 3.2, for --detector=paper: the rule of
 * scx_branches.h decides alone. A thread that it takes to spin yields at once, into SPIN. Each
 * decision is counted, by program and by site. The tool proves each site afterwards and counts true
 * and false positives (src/sched/audit.rs); no proof changes a decision. */
#pragma once

#include "scx_branches.bpf.h"
#include "scx_look.bpf.h"
#include "scx_queues.bpf.h"
#include "scx_spin.bpf.h"

/* The kernel drops the programs that were scanned longest ago. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, struct scx_program);
    __type(value, struct scx_scan);
} scx_scans SEC(".maps");

/* Only the tool writes and reads it. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 2048);
    __type(key, struct scx_program);
    __type(value, struct scx_audit);
} scx_audits SEC(".maps");

static struct scx_scan *scan_of(const struct task_struct *p)
{
    struct scx_program key = {.pid = p->tgid};
    struct task_struct *leader = ((struct task_struct___scx *)p)->group_leader;
    bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), scx(leader)->comm);
    struct scx_scan *scan = bpf_map_lookup_elem(&scx_scans, &key);
    if (scan)
        return scan;
    struct scx_scan none = {};
    bpf_map_update_elem(&scx_scans, &key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&scx_scans, &key);
}

/* Count a decision at the branch that closes the loop. Sends the first, second, fourth ... of them
 * to the tool until there is a verdict. Returns NULL if the map is full. */
static struct scx_site_info *taken_at(u64 loop, const struct pt_regs_x86 *r,
                                      const struct task_struct *p)
{
    struct scx_site site = {.ip = loop, .pid = p->tgid};
    struct scx_site_info *info = bpf_map_lookup_elem(&scx_sites, &site);
    if (!info) {
        struct scx_site_info new = {};
        bpf_map_update_elem(&scx_sites, &site, &new, BPF_NOEXIST);
        info = bpf_map_lookup_elem(&scx_sites, &site);
        if (!info)
            return NULL;
    }
    u64 times = __sync_fetch_and_add(&info->seen, 1) + 1;
    if (info->verdict == SCX_UNKNOWN && !(times & (times - 1)))
        suspect(&site, r, p->pid, times);
    return info;
}

/* Scan every thread that is scheduled here, whether or not another one wants its CPU, as the paper
 * does. If none does, the thread keeps the CPU. */
SEC("perf_event")
int look_paper(struct bpf_perf_event_data *event)
{
    struct pt_regs_x86 *r = &event->regs;
    /* Not user code: the PAUSE exits of a vCPU thread. */
    if ((r->cs & 3) != 3)
        return look_at(event, false);
    struct task_struct *p = bpf_get_current_task_btf();
    struct branch_cpu *b = branch_cpu();
    if (!b)
        return 0;
    /* First, since each scan ends an interval. */
    struct branch_look now;
    look_now(&now, p);
    enum branch_interval interval = paper_interval(&b->last, &now);
    b->last = now;
    s32 cpu = bpf_get_smp_processor_id();
    struct cpu *c = cpu_at(cpu);
    struct scx_counts *n = counts();
    if (interval == BRANCHES_UNKNOWN || !c || !n || !is_scheduled_here(p))
        return 0;
    struct thread *t = thread_of(p);
    struct scx_scan *scan = scan_of(p);
    if (!t || !scan)
        return 0;
    bool is_wanted = c->aside || scx_bpf_dsq_nr_queued(RUN(cpu)) > 0;
    if (is_wanted)
        n->samples++;
    n->tries++;
    __sync_fetch_and_add(&scan->tries, 1);
    s32 count = interval == BRANCHES_QUIET ? read_branches(b, r->ip) : 0;
    u64 loop = paper_loop(interval, b->branches, count > 0 ? count : 0, r->ip);
    if (!loop)
        return 0;
    n->positives++;
    __sync_fetch_and_add(&scan->positives, 1);
    struct scx_site_info *site = taken_at(loop, r, p);
    if (!is_wanted || t->aside)
        return 0;
    if (site)
        site->kicks++;
    give_way(event, t, n, cpu);
    return 0;
}
