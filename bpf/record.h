/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by record.bpf.c and crates/watch/src/trace/bpf.rs: events of one process's threads. */
#pragma once

#include "kernel.h"

enum record_kind {
    RECORD_RUNS = 1,  /* the thread got a CPU */
    RECORD_READY = 2, /* preempted: it waits for a CPU */
    RECORD_WAITS = 3, /* it blocked */
    RECORD_ENDS = 4,  /* it switched for the last time */
    RECORD_WAKES = 5, /* `other` woke the thread, or created it */
};

/* No system call: an interrupt, a page fault, or a kernel thread. */
#define RECORD_NO_CALL -1

struct record_event {
    __u64 time; /* ns of CLOCK_MONOTONIC */
    /* The first argument of `call`: the futex, if it is a futex call */
    __u64 futex;
    __u32 kind;
    __u32 thread; /* numbers as in the first PID namespace */
    __u32 cpu;
    __s32 call;      /* of the thread; RECORD_WAKES: of `other` */
    __u32 operation; /* second argument of `call` */
    __u32 value;     /* third argument */
    /* RECORD_WAITS in a futex call: the futex, and the word 8 bytes behind it, where a mutex of
     * glibc has its owner. 0: not readable */
    __u32 word, owner;
    __u32 other, other_pid; /* RECORD_WAKES only */
    __u32 lost;             /* record_state.lost before this event */
    __u32 pad;
    char name[16]; /* of the thread; RECORD_WAKES: of `other` */
};

struct record_state {
    __u32 target; /* process to record; 0: none */
    __u32 lost;   /* events for which the buffer had no room */
};
