/* SPDX-License-Identifier: GPL-2.0 */
/* The detector of Huang et al., HPDC'21, section 3.2, for --detector=paper: the rule of
 * scx_branches.h decides alone. A thread that it takes to spin yields at once, into SPIN. Each
 * decision is counted, by program and by site. The tool proves each site afterwards and counts true
 * and false positives (crates/scx/src/audit.rs); no proof changes a decision. */
#pragma once

#include "scx_branches.bpf.h"
#include "scx_queues.bpf.h"
#include "scx_scan.bpf.h"
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

static struct scx_scan *scan_of(struct task_struct *p)
{
    struct scx_program key = {.pid = p->tgid};
    struct task_struct *leader = scx(p)->group_leader;
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
static struct scx_site_info *count_positive(u64 loop, const struct pt_regs_x86 *r,
                                            const struct task_struct *p)
{
    struct scx_site site = {.ip = loop, .pid = p->tgid};
    struct scx_site_info *info = get_site(&site);
    if (!info)
        return NULL;
    u64 times = __sync_fetch_and_add(&info->seen, 1) + 1;
    if (info->verdict == SCX_UNKNOWN && is_power_of_two(times))
        send_candidate(&site, r, p->pid, times);
    return info;
}

/* Scan every thread that is scheduled here, whether or not another one wants its CPU, as the paper
 * does. If none does, the thread keeps the CPU. */
SEC("perf_event")
int scan_paper(struct bpf_perf_event_data *event)
{
    struct pt_regs_x86 *r = &event->regs;
    /* Not user code: the PAUSE exits of a vCPU thread. */
    if (!is_user(r))
        return scan_thread(event, false);
    struct task_struct *p = bpf_get_current_task_btf();
    struct branch_cpu *b = branch_cpu();
    if (!b)
        return 0;
    /* First, since each scan ends an interval. */
    enum branch_interval interval = since_last(b, p, paper_interval);
    s32 cpu = bpf_get_smp_processor_id();
    struct cpu_ctx *c = try_lookup_cpu_ctx(cpu);
    struct scx_counts *n = counts();
    if (interval == BRANCHES_UNKNOWN || !c || !n || !is_scheduled_here(p))
        return 0;
    struct task_ctx *t = try_lookup_task_ctx(p);
    struct scx_scan *scan = scan_of(p);
    if (!t || !scan)
        return 0;
    bool wanted = is_wanted(cpu, c);
    if (wanted)
        n->samples++;
    n->tries++;
    __sync_fetch_and_add(&scan->tries, 1);
    s32 count = interval == BRANCHES_QUIET ? read_branches(b, r->ip) : 0;
    u64 loop = paper_loop(interval, b->branches, count > 0 ? count : 0, r->ip);
    if (!loop)
        return 0;
    n->positives++;
    __sync_fetch_and_add(&scan->positives, 1);
    struct scx_site_info *site = count_positive(loop, r, p);
    if (!wanted || t->is_spinning)
        return 0;
    if (site)
        site->kicks++;
    preempt_spinner(event, t, n, cpu);
    return 0;
}
