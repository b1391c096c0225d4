/* SPDX-License-Identifier: GPL-2.0 */
/* State that the parts of the scheduler share: that of each CPU and each thread, and counts for the
 * tool. */
#pragma once

#include "scx.h"
#include "scx_lissom.h"

enum { MAX_CPUS = 1024 };

u32 nr_cpus; /* the highest number of a possible CPU, plus 1 */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct scx_state);
} scx_state SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct scx_counts);
} scx_counts SEC(".maps");

static struct scx_counts *counts(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&scx_counts, &zero);
}

#define COUNT(what) \
    do { \
        struct scx_counts *counts_ = counts(); \
        if (counts_) \
            counts_->what++; \
    } while (0)

/* Changed under the lock of the CPU's run queue. */
struct cpu_ctx {
    u64 now;  /* virtual time of the thread that has come furthest here */
    u64 runs; /* threads taken from RUN */
    /* scx_queues.bpf.h */
    u32 pass, events;
    /* SPIN may hold threads: asking a queue costs more than the rest of a dispatch */
    bool has_spinning;
    u64 starvation_checked; /* time of the last search for threads that have waited for too long */
    /* scx_steal.bpf.h */
    bool is_offline; /* or about to be */
    u64 balanced;    /* time of the last check of another queue */
    u32 probe;       /* the next CPU to check */
    /* scx_park.bpf.h */
    u64 expired;                      /* time of the last search for threads parked for too long */
    bool has_woken;                   /* a thread has just woken `woken` */
    struct task_struct __kptr *woken; /* the thread to run next */
    u64 left_ns;                      /* rest of the waker's slice */
    int parker;                       /* pid of the waker if it is to be parked, else 0 */
    /* scx_wake.bpf.h */
    bool has_stays; /* threads of a bulk wake-up may wait in RUN */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MAX_CPUS);
    __type(key, u32);
    __type(value, struct cpu_ctx);
} cpu_ctx_stor SEC(".maps");

static struct cpu_ctx *try_lookup_cpu_ctx(s32 cpu)
{
    u32 key = cpu;
    return bpf_map_lookup_elem(&cpu_ctx_stor, &key);
}

/* Scans meet a loop of several instructions at several of them. */
enum { STATES = 8, PLACES = 8 };

/* Results of the scans of a thread: scx_spin.bpf.h. */
struct scan_state {
    u64 state[STATES]; /* hashes of the last ones */
    u64 place[PLACES]; /* hashes of instruction and frame where it was preempted */
    u32 next, next_place;
    u32 seen;    /* scans in a row that found a known state */
    u64 data;    /* hash of the registers but ip and flags, at its last preemption */
    bool is_new; /* this hash differed from the one before: it has made progress in between */
    /* By branch records (scx_branches.bpf.h); a loop is its last instruction. */
    u64 loop;          /* the last one in which it was seen */
    u64 left_loop;     /* the one where it was preempted; 0: none, or it has been elsewhere since */
    u32 loops;         /* scans in a row that found it in `loop` */
    u32 skip, backoff; /* scans left without reading its records, and how many at the next time */
};

struct task_ctx {
    /* scx_vtime.bpf.h */
    u64 vtime;
    u64 charged; /* its sum_exec_runtime up to which vtime is charged */
    u64 moved;   /* when it came to its CPU from another one */
    s32 cpu;     /* CPU whose virtual time vtime follows; -1: none yet */
    u32 group;   /* index in groups */
    u32 counted; /* its weight in its group's load; 0: it sleeps */
    /* scx_queues.bpf.h */
    bool is_spinning; /* it enters SPIN next */
    u64 queued;       /* when it entered RUN or SPIN */
    u64 turn;         /* `runs` of its CPU from which on it may be taken from SPIN */
    u32 progress;     /* `events` of its CPU when it last did something else than wait */
    /* scx_park.bpf.h */
    volatile u32 parked; /* enum parking */
    bool in_ring;        /* of the CPU where it was first parked */
    u64 parked_at;
    /* scx_vcpu.bpf.h */
    volatile bool guest_spins;
    /* scx_wake.bpf.h. When it last woke a thread, its switches by then, and its wake-ups in a row.
     * bulk: of a process's first thread, how many threads one of its threads recently woke at
     * once. */
    u64 woke_at, woke_switches;
    u32 wakes, bulk;
    struct scan_state scan;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task_ctx);
} task_ctx_stor SEC(".maps");

/* Returns NULL for a thread without lissom_init_task: the idle thread of a CPU, for example. */
static struct task_ctx *try_lookup_task_ctx(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx_stor, p, NULL, 0);
}
