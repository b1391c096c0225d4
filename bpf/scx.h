/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's side of a sched_ext scheduler (Documentation/scheduler/sched-ext.rst), as far as
 * scx_lissom uses it, of Linux 6.18 to 7.3. Macros and wrappers have the names that the scx
 * project's common.bpf.h and compat.bpf.h give them. A function that has changed its arguments or
 * its result has a version for each. The one that the kernel has is called: bpf_ksym_exists is
 * decided when the program is loaded. Three underscores, and all behind them, are not part of a
 * kernel function's name. */
#pragma once

#include "kernel.h"

struct bpf_iter_num {
    __u64 opaque[1];
} __attribute__((aligned(8)));

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

/* Unchanged since sched_ext was merged. */
#define SCX_DSQ_LOCAL ((1ULL << 63) | 2)
#define SCX_DSQ_LOCAL_ON ((1ULL << 63) | (1ULL << 62)) /* combined with a CPU */
#define SCX_KICK_IDLE (1ULL << 0)
#define SCX_KICK_PREEMPT (1ULL << 1)
#define SCX_TASK_QUEUED 1
#define SCX_WAKE_FORK (1ULL << 2)
/* queue a wake-up for the CPU where it goes; select_cpu may not be called then */
#define SCX_OPS_ALLOW_QUEUED_WAKEUP (1ULL << 5)

/* From linux/sched.h. */
enum {
    SCHED_FIFO = 1,
    SCHED_RR = 2,
    SCHED_DEADLINE = 6,
    SCHED_EXT = 7,
};

enum scx_exit_kind {
    SCX_EXIT_NONE,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_ext_entity {
    u32 flags, weight;
    u64 slice, dsq_vtime;
};

struct sched_entity {
    u64 sum_exec_runtime;
};

/* Defined, because functions that take it are only found for a structure, not for a mere name. */
struct cpumask {
    unsigned long bits[1];
};

/* Fields of a thread beside those in kernel.h. */
struct task_struct___scx {
    struct sched_ext_entity scx;
    struct sched_entity se;
    int nr_cpus_allowed;
    unsigned long nvcsw, nivcsw;
    const struct cpumask *cpus_ptr;
    u32 policy;
    struct task_struct *group_leader;
    char comm[16];
};

struct pt_regs {
    unsigned long di, si, dx;
};

struct kernfs_node {
    u64 id;
};

struct cgroup {
    int level;
    struct kernfs_node *kn;
};

struct scx_init_task_args {
    struct cgroup *cgroup;
};

struct scx_cgroup_init_args {
    u32 weight;
};

struct scx_exit_info {
    enum scx_exit_kind kind;
    s64 exit_code;
    const char *reason;
    char *msg;
};

struct scx_bpf_dsq_insert_vtime_args {
    u64 dsq_id, slice, vtime, enq_flags;
};

#pragma clang attribute pop

/* The CPU's registers at the interrupt, in this order. */
struct pt_regs_x86 {
    u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
        sp, ss;
};

struct bpf_perf_event_data {
    struct pt_regs_x86 regs;
    u64 sample_period, addr;
};

/* Return whether the interrupt came from user code. */
static inline bool is_user(const struct pt_regs_x86 *r) { return (r->cs & 3) == 3; }

struct bpf_perf_event_value {
    u64 counter, enabled, running;
};

struct bpf_iter_scx_dsq {
    u64 opaque[6];
} __attribute__((aligned(8)));

/* The iterator of a bpf_for_each() loop, for scx_bpf_dsq_move(). */
#define BPF_FOR_EACH_ITER (&___it)

/* Define an operation of the scheduler. The second kind may sleep. */
#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

/* The scheduler's operations, by name. Operations that are missing here keep their defaults. */
struct sched_ext_ops {
    s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 flags);
    void (*enqueue)(struct task_struct *p, u64 flags);
    void (*dispatch)(s32 cpu, struct task_struct *prev);
    void (*tick)(struct task_struct *p);
    void (*quiescent)(struct task_struct *p, u64 flags);
    void (*set_weight)(struct task_struct *p, u32 weight);
    void (*enable)(struct task_struct *p);
    void (*disable)(struct task_struct *p);
    bool (*yield)(struct task_struct *from, struct task_struct *to);
    s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
    s32 (*cgroup_init)(struct cgroup *group, struct scx_cgroup_init_args *args);
    void (*cgroup_exit)(struct cgroup *group);
    void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
    void (*cgroup_set_weight)(struct cgroup *group, u32 weight);
    void (*cgroup_set_bandwidth)(struct cgroup *group, u64 period_us, u64 quota_us, u64 burst_us);
    void (*cpu_online)(s32 cpu);
    void (*cpu_offline)(s32 cpu);
    s32 (*init)(void);
    void (*exit)(struct scx_exit_info *info);
    u64 flags;
    u32 timeout_ms;
    char name[128];
};

s32 scx_bpf_create_dsq(u64 id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 flags, bool *is_idle) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __ksym;
bool bpf_cpumask_empty(const struct cpumask *mask) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 id) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
u64 scx_bpf_now(void) __ksym;
void scx_bpf_exit_bstr(s64 code, char *format, unsigned long long *data, u32 data__sz) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 id,
                      u64 flags) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
struct task_struct *bpf_task_from_vpid(s32 tid) __ksym;
struct task_struct *bpf_task_from_pid(s32 tid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *group, int level) __ksym;
void bpf_cgroup_release(struct cgroup *group) __ksym;

/* 6.19: returns whether it was done. */
bool scx_bpf_dsq_insert___v2___since_6_19(struct task_struct *p, u64 id, u64 slice,
                                          u64 flags) __ksym __weak;
void scx_bpf_dsq_insert___until_6_18(struct task_struct *p, u64 id, u64 slice,
                                     u64 flags) __ksym __weak;

static inline void scx_bpf_dsq_insert(struct task_struct *p, u64 queue, u64 slice, u64 flags)
{
    if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___since_6_19))
        scx_bpf_dsq_insert___v2___since_6_19(p, queue, slice, flags);
    else
        scx_bpf_dsq_insert___until_6_18(p, queue, slice, flags);
}

/* 6.19: arguments in a structure. */
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
                                struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime___until_6_18(struct task_struct *p, u64 id, u64 slice, u64 vtime,
                                           u64 flags) __ksym __weak;

/* Insert p into a queue in the order of vtime. */
static inline void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 queue, u64 slice, u64 vtime,
                                            u64 flags)
{
    if (bpf_core_type_exists(struct scx_bpf_dsq_insert_vtime_args)) {
        struct scx_bpf_dsq_insert_vtime_args args = {
            .dsq_id = queue, .slice = slice, .vtime = vtime, .enq_flags = flags};
        __scx_bpf_dsq_insert_vtime(p, &args);
    } else {
        scx_bpf_dsq_insert_vtime___until_6_18(p, queue, slice, vtime, flags);
    }
}

/* 7.1: flags. */
bool scx_bpf_dsq_move_to_local___v2___since_7_1(u64 id, u64 flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___until_7_0(u64 id) __ksym __weak;

/* Run the queue's first thread that may run on this CPU. Returns false if there is none. */
static inline bool scx_bpf_dsq_move_to_local(u64 queue)
{
    if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___since_7_1))
        return scx_bpf_dsq_move_to_local___v2___since_7_1(queue, 0);
    return scx_bpf_dsq_move_to_local___until_7_0(queue);
}

static inline struct task_struct___scx *scx(struct task_struct *p)
{
    return (struct task_struct___scx *)p;
}

/* 6.19; before, the field is written. */
bool scx_bpf_task_set_slice___since_6_19(struct task_struct *p, u64 slice) __ksym __weak;

static inline void scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
    if (bpf_ksym_exists(scx_bpf_task_set_slice___since_6_19))
        scx_bpf_task_set_slice___since_6_19(p, slice);
    else
        scx(p)->scx.slice = slice;
}

/* How often p was switched out. */
static inline u64 nr_switches(struct task_struct *p) { return scx(p)->nvcsw + scx(p)->nivcsw; }

/* Set *vtime to that of the queue's first thread. Returns false if the queue is empty. */
static inline bool first_vtime(u64 queue, u64 *vtime)
{
    struct task_struct *p;
    bpf_for_each(scx_dsq, p, queue, 0) {
        *vtime = scx(p)->scx.dsq_vtime;
        return true;
    }
    return false;
}

/* End the scheduler: the kernel's own takes over, and the tool gets `code` and the text. */
#define scx_bpf_exit(code, text) \
    ({ \
        static char format[] = text; \
        unsigned long long none[1] = {0}; \
        scx_bpf_exit_bstr(code, format, none, sizeof(none)); \
    })
