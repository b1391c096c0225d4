/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What scx_lissom.bpf.c and src/sched share. All times are ns. */
#pragma once

/* Of the layouts below: a tool that finds a scheduler of another version says so. */
#define SCX_LISSOM_VERSION 4

/* A thread under `lissom run` that waits for another one of its process parks itself and wakes that
 * one up with one call, sched_yield, and these in the registers of the first three arguments, where
 * other schedulers see nothing and only yield:
 *   rdi  SCX_PARK
 *   rsi 1: the thread is parked until somebody wakes it, unless somebody has since it was parked
 *   before; 0: it is not to be parked rdx the thread to wake up, as the caller's PID namespace
 *   numbers it; 0: none. One that is not parked does not park the next time
 * A parked thread may be run for no reason: who waits for what, is known to the process alone. */
#define SCX_PARK 0x6b7261706d73696cULL /* "lismpark" */

/* Set before the scheduler is loaded (section .rodata.config). */
struct scx_config {
    __u64 slice_ns; /* how long a thread runs while others want its CPU */
    /* between two looks at a running thread; 0: busy waiting is not looked for */
    __u64 sample_ns;
    __u64 park_ns;       /* a thread that is parked for longer has to sleep */
    __u64 is_partial;    /* 1: only threads that chose SCHED_EXT */
    __u64 ignore_limits; /* 1: a cgroup's cpu.max is disregarded */
    /* 1: for tests: nothing is dispatched any more, until the kernel's watchdog ends it */
    __u64 stall;
    /* 1: for tests: branch records say of everybody that it goes round in a loop, and registers are
     * not looked at */
    __u64 made_up;
};

/* What finds threads that wait in loops, if config.sample_ns is not 0. */
enum scx_detector {
    SCX_REGISTERS,
    SCX_BRANCHES, /* these, and the CPU's branch records and counts of misses */
    SCX_PAPER,    /* only records and misses, without a proof */
};

/* Map `scx_state`, an array of one. Written by who loads it. */
struct scx_state {
    __u32 version;
    __u32 pid;      /* of who loaded it */
    __u64 started;  /* CLOCK_MONOTONIC */
    __u64 detector; /* enum scx_detector */
    struct scx_config config;
};

/* Map `scx_counts`, an array of one for each CPU. Nothing is ever cleared. u64 only. */
struct scx_counts {
    __u64 wakeups;    /* threads that became runnable and had to wait for their turn, ... */
    __u64 idle_picks; /* ... and those for which an idle CPU was found at once */
    __u64 steals;     /* threads taken from another CPU's queue */
    __u64 samples;    /* looks at running threads whose CPU others want */
    __u64 spin_kicks; /* that found one waiting in a loop, which had to give way */
    __u64 spin_ns;    /* time that was wasted so, as far as it was seen */
    /* of threads under `lissom run`: by a flag instead of by sleeping, and those whose flag was
     * cleared in time */
    __u64 parks, unparks;
    /* parked threads that had to sleep: for too long, or the CPU had nothing else to run */
    __u64 park_ends;
    /* of spin_kicks, those of threads that run a guest's CPU, by a pause-loop exit */
    __u64 vcpu_kicks;
    __u64 branch_kicks; /* of spin_kicks, those that the registers would not have told */
    /* woken with as many others as there are CPUs, or more: those that waited for their own CPU
     * though another one was idle */
    __u64 bulk_stays;
    /* of SCX_PAPER: scans that could be decided, and those that took the thread to spin */
    __u64 tries, positives;
};

/* A program, by name: a process that becomes another one by exec begins anew. */
struct scx_program {
    __u32 pid; /* of the process, as the first PID namespace numbers it; 0: all programs */
    __u32 pad;
    char comm[16]; /* of the process's first thread */
};

/* Map `scx_scans`, a hash of struct scx_program: SCX_PAPER's scans of its threads. */
struct scx_scan {
    __u64 tries, positives;
};

/* Map `scx_audits`, a hash of struct scx_program: positives at sites of which the tool has proven
 * that they spin, or that they work. The rest is undecided. */
struct scx_audit {
    __u64 true_positives, false_positives;
};

/* Whether the CPU's branch records show a loop that the loader runs for that: .bss.trial */
struct scx_trial {
    __u64 looks;   /* at it */
    __u64 counted; /* when misses could be counted */
    __u64 quiet;   /* when there were none */
    __u64 full;    /* when there were enough records */
    __u64 loops;   /* that showed it: no misses, and all records are its branch */
    __s64 error;   /* of the last read of the records that failed */
};

/* Where a thread was seen in the same state again and again. */
struct scx_site {
    __u64 ip;  /* of a look; or of the branch that closes a loop, by branch records */
    __u32 pid; /* of the process, as the first PID namespace numbers it */
    __u32 pad;
};

/* What is known of a site: map `scx_sites`, a hash of struct scx_site. The kernel side notes it as
 * UNKNOWN and sends a struct scx_candidate; the tool looks at the code and decides. Nobody is made
 * to give way before, but by SCX_PAPER. */
enum scx_verdict {
    SCX_UNKNOWN,
    SCX_SPINS, /* it waits for a word that somebody else has to change */
    SCX_WORKS, /* it only looks so */
};

struct scx_site_info {
    __u32 verdict; /* enum scx_verdict; written by the tool */
    __u32 pad;
    __u64 seen;  /* times that it was met while it was UNKNOWN; by SCX_PAPER, all positives */
    __u64 kicks; /* threads that had to give way there */
};

/* Ring buffer `scx_candidates`. */
struct scx_candidate {
    struct scx_site site;
    __u32 thread; /* as the first PID namespace numbers it */
    __u32 pad;
    __u64 seen; /* how often it was in this state, in succession */
    /* Its registers, as in struct user_regs_struct: rax rbx rcx rdx rsi rdi rbp rsp r8..r15 rip
     * rflags */
    __u64 registers[18];
};

/* How it ended, in .bss.exit: written once, `kind` last, in the words of the kernel's struct
 * scx_exit_info. */
struct scx_exit {
    __u64 kind; /* enum scx_exit_kind; 0: it runs */
    __s64 code;
    char reason[128], message[1024];
};

/* Why the scheduler ended by itself: codes of struct scx_exit_info (exit_code), beside those of the
 * kernel. */
/* a cgroup got a cpu.max, which only the kernel's own scheduler enforces */
#define SCX_EXIT_CODE_LIMIT 1
