/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by kvm.bpf.c and crates/kvm/src/observe. All times are in ns. */
#pragma once

#include "kernel.h"

/* Buckets of a histogram. The first one has times below 2^10 ns; then there are two for each
 * doubling. */
#define KVM_BUCKETS 64

/* A VM. The address alone may be that of another VM when this one has ended. */
struct kvm_vm {
    __u64 kvm;
    __u32 pid; /* of its VMM: a thread group id, as the first PID namespace numbers it */
    __u32 pad;
};

/* Counts of a VM, on one CPU. Nothing is ever cleared: the count of a period is the growth. u64
 * only. */
struct kvm_counts {
    __u64 entries, exits, guest_ns; /* guest_ns: from entry to exit */
    /* exits by a PAUSE (Intel: pause-loop exits, AMD: those of the pause filter) */
    __u64 pause_exits;
    /* spinning before these exits: the window, but at most the time since the entry */
    __u64 spin_ns;
    /* from such an exit until the CPU did something useful again */
    __u64 switch_ns;
    __u64 back_to_same;        /* exits with the next VM entry of the same vCPU */
    __u64 back_to_other;       /* exits with the next VM entry of another vCPU, of any VM */
    __u64 left;                /* exits before another thread ran, or the CPU went idle */
    __u64 yields, yields_done; /* directed yields tried, and those that found a runnable vCPU */
    __u64 wakeups, slept;      /* ends of a HLT, and those for which the thread had slept */
    /* As counted by KVM itself. */
    __u64 polls, poll_hits, poll_hit_ns, poll_miss_ns;
    __u64 poll_grows, poll_shrinks;
    /* Sums of the windows in force at pause_exits, and of those after poll_grows and poll_shrinks:
     * for means. */
    __u64 window_sum, poll_window_sum;
    __u64 vcpus;                 /* number of vCPUs; the only field that does not grow */
    __u64 switches[KVM_BUCKETS]; /* histogram of switch_ns */
    __u64 halts[KVM_BUCKETS];    /* histogram: from a HLT to its end, polled or slept */
};

/* Vendors whose exits by PAUSE are counted. */
#define KVM_INTEL 1
#define KVM_AMD 2

/* Set before the programs are loaded. */
struct kvm_config {
    __u64 vendor; /* 0: exits by PAUSE are not counted */
    __u64 unit;   /* ns << 20 per unit of the window: Intel counts TSC cycles, AMD PAUSEs */
};

struct kvm_state {
    /* events that are not counted: no memory, or too many VMs */
    __u64 lost;
};
