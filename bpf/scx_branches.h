/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The paper's rule by which a thread is seen to go round in a loop (Huang et al., HPDC'21, section
 * 3.2): from one look to the next it has missed neither L1D nor the TLB, and all of the CPU's
 * last-branch records are the same branch backwards. Nothing here asks the kernel, so that a test
 * can make up what the CPU might say: src/sched/branches.rs. Pre: __u64 and bool are known. */
#pragma once

enum {
    /* With fewer records nothing can be told: either the thread is on the CPU since so few branches
     * (records are wiped when threads are switched), or the CPU only has 4 or 8, and these are the
     * same in each inner loop of as many turns. 16 is what the paper's CPUs have. */
    LEAST_BRANCHES = 16,
    MOST_BRANCHES = 32, /* that any CPU has; all there are have to be the same */
};

/* As the kernel's struct perf_branch_entry. The flags (predicted or not, cycles, kind) differ from
 * turn to turn, and are not looked at. */
struct branch {
    __u64 from, to, flags;
};

/* A CPU at a look. */
struct branch_look {
    __u64 thread;                  /* that runs; 0: the counts could not be read */
    __u64 switches;                /* how often it has left a CPU */
    __u64 l1d_misses, dtlb_misses; /* of user code */
    /* for which they were not counted, because somebody else had the counters, or had the records
     * filled by a filter of his own */
    __u64 blind_ns;
};

enum branch_interval {
    BRANCHES_UNKNOWN, /* it has not run all the time since the last look, or nobody has counted */
    BRANCHES_MISSED,  /* it reads what it has not just read: it gets on */
    BRANCHES_QUIET,
};

static inline enum branch_interval branch_interval(const struct branch_look *before,
                                                   const struct branch_look *now)
{
    if (!now->thread || now->thread != before->thread || now->switches != before->switches ||
        now->blind_ns != before->blind_ns)
        return BRANCHES_UNKNOWN;
    if (now->l1d_misses != before->l1d_misses || now->dtlb_misses != before->dtlb_misses)
        return BRANCHES_MISSED;
    return BRANCHES_QUIET;
}

/* The same by the paper's rule, for --detector=paper: whatever has run on the CPU since the last
 * look, one miss of any thread counts. */
static inline enum branch_interval paper_interval(const struct branch_look *before,
                                                  const struct branch_look *now)
{
    if (!before->thread || !now->thread || now->blind_ns != before->blind_ns)
        return BRANCHES_UNKNOWN;
    if (now->l1d_misses != before->l1d_misses || now->dtlb_misses != before->dtlb_misses)
        return BRANCHES_MISSED;
    return BRANCHES_QUIET;
}

/* The branch that closes the loop in which a thread is that was interrupted at ip; 0: none, or it
 * cannot be told. The thread's next instruction lies in it: so what another thread has left behind
 * is not taken for its own. */
static inline __u64 branch_loop(const struct branch *branches, __u32 count, __u64 ip)
{
    __u64 from = branches[0].from, to = branches[0].to;
    if (count < LEAST_BRANCHES) return 0;
    /* The upper half is the kernel's. A branch to itself waits for nobody. */
    if (from >> 63 || to >= from || ip < to || ip > from) return 0;
    for (__u32 i = 1; i < MOST_BRANCHES; i++) {
        if (i >= count) break;
        if (branches[i].from != from || branches[i].to != to) return 0;
    }
    return from;
}

/* The paper's decision: the loop in which a thread is taken to spin, interrupted at ip, or 0. Only
 * the last 16 records count, as the paper's CPUs have no more: branches[0] is the newest. Records
 * are only read for a quiet interval, so `count` is 0 for any other. */
static inline __u64 paper_loop(enum branch_interval interval, const struct branch *branches,
                               __u32 count, __u64 ip)
{
    if (interval != BRANCHES_QUIET) return 0;
    return branch_loop(branches, count > LEAST_BRANCHES ? LEAST_BRANCHES : count, ip);
}
