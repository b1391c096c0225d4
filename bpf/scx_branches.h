/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The paper's rule for a thread that goes round in a loop (Huang et al., HPDC'21, section 3.2):
 * between two scans it has missed neither L1D nor the TLB, and all last-branch records of the CPU
 * are the same backward branch. Nothing here asks the kernel, so a test can make up what
 * the CPU might report: crates/scx/src/branches.rs. */
#pragma once

#ifdef __bpf__
#include "kernel.h"
#else
#include <linux/types.h>
#include <stdbool.h>
#endif

enum {
    /* Fewer records prove nothing. The thread may have taken few branches since it came to the CPU:
     * records are wiped when threads are switched. Or the CPU only has 4 or 8, which are the same
     * in each inner loop of as many turns. The paper's CPUs have 16. */
    LEAST_BRANCHES = 16,
    MOST_BRANCHES = 32, /* of any CPU; all that it has must be the same */
};

/* As the kernel's struct perf_branch_entry. The flags (predicted or not, cycles, kind) differ from
 * turn to turn, and are ignored. */
struct branch {
    __u64 from, to, flags;
};

/* The state of a CPU at a scan. */
struct branch_scan {
    __u64 thread;                  /* running thread; 0: the counts could not be read */
    __u64 switches;                /* times that it has left a CPU */
    __u64 l1d_misses, dtlb_misses; /* of user code */
    /* time in which these were not counted: another user had the counters, or filled the records
     * with a filter of its own */
    __u64 blind_ns;
};

enum branch_interval {
    BRANCHES_UNKNOWN, /* it has run with a break since the last scan, or misses were not counted */
    BRANCHES_MISSED,  /* it reads what it has not just read: it makes progress */
    BRANCHES_QUIET,
};

/* Classify the interval between two scans of a CPU by the paper's rule, for --detector=paper:
 * whatever has run there in between, one miss of any thread counts. */
static inline enum branch_interval paper_interval(const struct branch_scan *before,
                                                  const struct branch_scan *now)
{
    if (!before->thread || !now->thread || now->blind_ns != before->blind_ns)
        return BRANCHES_UNKNOWN;
    if (now->l1d_misses != before->l1d_misses || now->dtlb_misses != before->dtlb_misses)
        return BRANCHES_MISSED;
    return BRANCHES_QUIET;
}

/* Classify the interval if one thread has run in it, without a break; otherwise it is unknown. */
static inline enum branch_interval branch_interval(const struct branch_scan *before,
                                                   const struct branch_scan *now)
{
    if (now->thread != before->thread || now->switches != before->switches)
        return BRANCHES_UNKNOWN;
    return paper_interval(before, now);
}

/* Return the branch that closes the loop of a thread that was interrupted at ip; 0 if there is
 * none, or it is unknown. The thread's next instruction must lie in the loop: so records that
 * another thread has left behind do not count. */
static inline __u64 branch_loop(const struct branch *branches, __u32 count, __u64 ip)
{
    __u64 from = branches[0].from, to = branches[0].to;
    if (count < LEAST_BRANCHES)
        return 0;
    /* The upper half is the kernel's. A branch to itself waits for no other thread. */
    if (from >> 63 || to >= from || ip < to || ip > from)
        return 0;
    for (__u32 i = 1; i < MOST_BRANCHES; i++) {
        if (i >= count)
            break;
        if (branches[i].from != from || branches[i].to != to)
            return 0;
    }
    return from;
}

/* Return the loop in which the paper takes a thread, interrupted at ip, to spin; or 0. Only the
 * last 16 records count, since the paper's CPUs have no more; branches[0] is the newest. Records
 * are only read for a quiet interval, so `count` is 0 for any other. */
static inline __u64 paper_loop(enum branch_interval interval, const struct branch *branches,
                               __u32 count, __u64 ip)
{
    if (interval != BRANCHES_QUIET)
        return 0;
    return branch_loop(branches, count > LEAST_BRANCHES ? LEAST_BRANCHES : count, ip);
}
