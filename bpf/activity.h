/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by activity.bpf.c and crates/watch/src/activity/bpf.rs: the activity of processes, in an
 * array that both map. */
#pragma once

#include "kernel.h"

/* Runnable threads are counted up to this number: the last entry stands for as many or more. */
#define ACTIVITY_LAST 64

/* A slot of the array. `time` is never cleared, and no period is known here. An interval with i
 * threads from t0 to t1 is -t0 + t1 in time[i]. So the entry of the current number is hugely
 * negative, the others are sums of time since `start`, and the sum of all is -start. The time of a
 * period is the growth of an entry.
 *
 * Each change adds its time to one entry and subtracts it from another. Additions commute, so CPUs
 * need no lock. If two CPUs change the number at once, their times differ by less than a
 * microsecond, and so does the result. */
struct activity {
    /* CLOCK_MONOTONIC in ns: start of the counting; 0: the slot is free. Identifies one process, as
     * pid alone does not */
    __u64 start;
    __u32 pid;     /* thread group id, as the first PID namespace numbers it */
    __u32 execs;   /* incremented by each exec: the process is another program then */
    __s32 threads; /* that have not ended. 0: a zombie */
    __s32 runnable;
    __s64 time[ACTIVITY_LAST + 1];
} __attribute__((aligned(64)));

struct activity_state {
    __u32 used; /* slots from here on were never used; for a moment, more than there are */
    __u32 lost; /* threads and processes that are not counted: no memory, or no slot */
};
