/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What activity.bpf.c and src/manager/activity.rs share: a process's activity, in an array that
 * both map. */
#pragma once

/* Runnable threads are counted up to here: the last entry stands for as many or more. */
#define ACTIVITY_LAST 64

/* A slot of the array. `time` is never cleared, and no period is known here: an interval with i
 * threads from t0 to t1 is -t0 + t1 in time[i]. So the one entry of now is hugely negative, the
 * others are sums of time since `start`, the sum of all is -start, and what a period had is what
 * they have grown by. Each change adds its time to one entry and takes it from another. Additions
 * commute, so CPUs need no lock; what each of two CPUs that change the count at once takes for the
 * time differs by less than a microsecond, and so does the result. */
struct activity {
    /* ns, CLOCK_MONOTONIC: since when it is counted. 0: the slot is free. Names one process, as pid
     * alone does not */
    __u64 start;
    __u32 pid;     /* thread group id, as the first PID namespace numbers it */
    __u32 execs;   /* grows with each exec: the process is another program */
    __s32 threads; /* that have not ended. 0: a zombie */
    __s32 runnable;
    __s64 time[ACTIVITY_LAST + 1];
} __attribute__((aligned(64)));

struct activity_state {
    __u32 used; /* slots from here on have never been used; for a moment, more than there are */
    __u32 lost; /* threads and processes that are not counted, for lack of memory or of a slot */
};
