/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What kvm.bpf.c and src/kvm/observe share. All times are ns. */
#pragma once

/* Of the histograms. The first bucket is what is shorter than 2^10 ns; then there are two for each
 * doubling. */
#define KVM_BUCKETS 64

/* A VM. The address alone would be given out again when the VM has ended. */
struct kvm_vm {
    __u64 kvm;
    __u32 pid; /* of its VMM: a thread group id, as the first PID namespace numbers it */
    __u32 pad;
};

/* What happened in a VM, on one CPU. Nothing is ever cleared: what a period had is what it has
 * grown by. u64 only. */
struct kvm_counts {
    __u64 entries, exits, guest_ns; /* from entry to exit */
    /* Exits by a PAUSE (Intel: pause-loop exits, AMD: those of the pause filter), ... */
    __u64 pause_exits;
    /* ... the spinning that led there: the window, but no more than the time since the entry ... */
    __u64 spin_ns;
    /* ... and the time from such an exit until the CPU did something useful again: */
    __u64 switch_ns;
    __u64 back_to_same;        /* the next VM entry there was of the same vCPU, */
    __u64 back_to_other;       /* of another one, of any VM, */
    __u64 left;                /* or a thread that is no vCPU came first, or the CPU went idle */
    __u64 yields, yields_done; /* directed yields tried, and those that found a runnable vCPU */
    __u64 wakeups, slept;      /* ends of a HLT; those for which the thread had slept */
    /* As KVM itself counts them. */
    __u64 polls, poll_hits, poll_hit_ns, poll_miss_ns;
    __u64 poll_grows, poll_shrinks;
    /* Of the windows in force at pause_exits, and of those that poll_grows and poll_shrinks led to:
     * for means. */
    __u64 window_sum, poll_window_sum;
    __u64 vcpus;                 /* The only one that does not grow: how many there are */
    __u64 switches[KVM_BUCKETS]; /* of switch_ns */
    __u64 halts[KVM_BUCKETS];    /* from a HLT to its end, polled or slept */
};

/* Whose exits by PAUSE there are. */
#define KVM_INTEL 1
#define KVM_AMD 2

/* Set before the programs are loaded. */
struct kvm_config {
    __u64 vendor; /* 0: none are counted */
    __u64 unit;   /* ns << 20 in one unit of the window: Intel counts TSC cycles, AMD PAUSEs */
};

struct kvm_state {
    /* events that are not counted, for lack of memory or because there are too many VMs */
    __u64 lost;
};
