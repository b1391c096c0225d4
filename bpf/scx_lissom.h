/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by scx_lissom.bpf.c and crates/scx. All times are in ns. */
#pragma once

#ifdef __bpf__
#include "kernel.h"
#else
#include <linux/types.h>
#endif

/* Version of the layouts below. A tool that finds a scheduler of another version reports that. */
#define SCX_LISSOM_VERSION 4

/* A call of a thread under `lissom run` that waits for another thread of its process: one
 * sched_yield(2) parks the caller and wakes the other one. The registers of the first three
 * arguments have these values, which other schedulers ignore: they only yield.
 *
 *   rdi  SCX_PARK
 *   rsi  1: park the caller until another thread wakes it, unless one has since it last parked;
 *        0: do not park it
 *   rdx  the thread to wake, as the caller's PID namespace numbers it; 0: none. If it is not
 *        parked, it does not park the next time
 *
 * A parked thread may run spuriously: only the process knows which thread waits for what. */
#define SCX_PARK 0x6b7261706d73696cULL /* "lismpark" */

/* Settings of the scheduler: the tunables of these names (scx_tunables.bpf.h), and the interval of
 * scans. */
struct scx_config {
    __u64 slice_ns;
    /* between two scans of a running thread; 0: no detection of busy-waiting. Perf events of the
     * tool keep this interval */
    __u64 sample_ns;
    __u64 park_ns;
    __u64 is_partial, ignore_limits;
    __u64 stall, made_up; /* for tests */
};

/* Detector of threads that wait in loops, if the interval of scans is not 0. */
enum scx_detector {
    SCX_REGISTERS,
    SCX_BRANCHES, /* registers, and the CPU's branch records and counts of misses */
    SCX_PAPER,    /* records and misses only, without a proof */
};

/* Map `scx_state`, an array of one. Written by the tool. */
struct scx_state {
    __u32 version;
    __u32 pid;      /* of the tool */
    __u64 started;  /* CLOCK_MONOTONIC */
    __u64 detector; /* enum scx_detector */
    struct scx_config config;
};

/* Map `scx_counts`, an array with one entry per CPU. Nothing is ever cleared. u64 only. */
struct scx_counts {
    __u64 wakeups;    /* threads that became runnable and had to wait for their turn */
    __u64 idle_picks; /* woken threads for which an idle CPU was found at once */
    __u64 steals;     /* threads taken from another CPU's queue */
    __u64 samples;    /* scans of running threads whose CPU others want */
    __u64 spin_kicks; /* scans that found a thread waiting in a loop, and preempted it */
    __u64 spin_ns;    /* time wasted by such waits, as far as scans saw it */
    /* threads under `lissom run` that parked instead of sleeping, and those that were woken in
     * time */
    __u64 parks, unparks;
    /* parked threads that had to sleep: for too long, or the CPU had nothing else to run */
    __u64 park_ends;
    /* of spin_kicks: vCPU threads, by a pause-loop exit */
    __u64 vcpu_kicks;
    __u64 branch_kicks; /* of spin_kicks: threads that registers would not have shown */
    /* threads of bulk wake-ups, of at least as many threads as there are CPUs, that waited for
     * their own CPU although another one was idle */
    __u64 bulk_stays;
    /* of SCX_PAPER: scans that could be decided, and those that took the thread to spin */
    __u64 tries, positives;
};

/* A program, by name: after exec a process is another program. */
struct scx_program {
    __u32 pid; /* of the process, as the first PID namespace numbers it; 0: all programs */
    __u32 pad;
    char comm[16]; /* of the process's first thread */
};

/* Map `scx_scans`, a hash by struct scx_program: SCX_PAPER's scans of its threads. */
struct scx_scan {
    __u64 tries, positives;
};

/* Map `scx_audits`, a hash by struct scx_program: positives at sites that the tool has proven to
 * spin, or to work. All others are undecided. */
struct scx_audit {
    __u64 true_positives, false_positives;
};

/* Do the CPU's branch records show a loop that the tool runs for that purpose? In .bss.trial. */
struct scx_trial {
    __u64 looks;   /* scans of it */
    __u64 counted; /* scans in which misses could be counted */
    __u64 quiet;   /* scans without misses */
    __u64 full;    /* scans with enough records */
    __u64 loops;   /* scans that showed it: no misses, and all records are its branch */
    __s64 error;   /* of the last read of the records that failed */
};

/* A place where a thread was repeatedly seen in the same state. */
struct scx_site {
    __u64 ip;  /* of a scan; by branch records, of the branch that closes a loop */
    __u32 pid; /* of the process, as the first PID namespace numbers it */
    __u32 pad;
};

/* The state of a site: map `scx_sites`, a hash by struct scx_site. The kernel side adds a site
 * as UNKNOWN, and sends a struct scx_candidate. The tool examines the code and decides. Before
 * that, only SCX_PAPER preempts threads there. */
enum scx_verdict {
    SCX_UNKNOWN,
    SCX_SPINS, /* it waits for a word that another thread has to change */
    SCX_WORKS, /* it only looks like that */
};

struct scx_site_info {
    __u32 verdict; /* enum scx_verdict; written by the tool */
    __u32 pad;
    __u64 seen;  /* times that it was seen while UNKNOWN; by SCX_PAPER, all positives */
    __u64 kicks; /* threads that were preempted there */
};

/* Ring buffer `scx_candidates`. */
struct scx_candidate {
    struct scx_site site;
    __u32 thread; /* as the first PID namespace numbers it */
    __u32 pad;
    __u64 seen; /* times in a row that it was seen in this state */
    /* rax rbx rcx rdx rsi rdi rbp rsp r8..r15 rip rflags */
    __u64 registers[18];
};

/* Exit code (exit_code of struct user_exit_info) of a scheduler that ended itself: a cgroup got a
 * cpu.max, which only the kernel's own scheduler enforces. */
#define SCX_EXIT_CODE_LIMIT 1
