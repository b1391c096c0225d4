// SPDX-License-Identifier: GPL-2.0
/* Send the switches and wake-ups of one process's threads through a ring buffer.
 *
 * The system call of a blocked thread and its arguments are in the registers that the thread saved
 * when it entered the kernel. So no program runs at system calls, and threads of other processes
 * cost one comparison at their switches and wake-ups. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "record.h"
#include "state.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define CALL_FUTEX 202
/* The reader polls; to wake it costs the program time. */
#define BPF_RB_NO_WAKEUP 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
    unsigned long orig_ax, di, si, dx;
};

#pragma clang attribute pop

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 16 << 20);
} events SEC(".maps");

struct record_state state;

static bool is_target(struct task_struct *task)
{
    __u32 target = *(volatile __u32 *)&state.target;
    return target != 0 && (__u32)task->tgid == target;
}

static struct record_event *event(__u32 kind, struct task_struct *thread, struct task_struct *named)
{
    struct record_event *e = bpf_ringbuf_reserve(&events, sizeof *e, 0);
    if (!e) {
        __sync_fetch_and_add(&state.lost, 1);
        return NULL;
    }
    __builtin_memset(e, 0, sizeof *e);
    e->time = bpf_ktime_get_ns();
    e->kind = kind;
    e->thread = thread->pid;
    e->cpu = bpf_get_smp_processor_id();
    e->call = RECORD_NO_CALL;
    e->lost = *(volatile __u32 *)&state.lost;
    bpf_probe_read_kernel_str(e->name, sizeof e->name, named->comm);
    return e;
}

/* Add the system call in which `task` is. */
static void add_call(struct record_event *e, struct task_struct *task)
{
    struct pt_regs *r = (struct pt_regs *)bpf_task_pt_regs(task);
    if (!r)
        return;
    e->call = (long)r->orig_ax < 0 ? RECORD_NO_CALL : (__s32)r->orig_ax;
    e->futex = r->di;
    e->operation = r->si;
    e->value = r->dx;
}

/* Runs before the CPU changes address spaces: memory of user space is that of `prev`. */
SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    if (is_target(prev)) {
        __u32 now = state_of(prev);
        __u32 kind = now & TASK_DEAD                  ? RECORD_ENDS
                     : preempt || now == TASK_RUNNING ? RECORD_READY
                                                      : RECORD_WAITS;
        struct record_event *e = event(kind, prev, prev);
        if (e) {
            if (kind == RECORD_WAITS)
                add_call(e, prev);
            if (kind == RECORD_WAITS && e->call == CALL_FUTEX) {
                bpf_probe_read_user(&e->word, sizeof e->word, (void *)e->futex);
                bpf_probe_read_user(&e->owner, sizeof e->owner, (void *)(e->futex + 8));
            }
            bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
        }
    }
    if (is_target(next)) {
        struct record_event *e = event(RECORD_RUNS, next, next);
        if (e)
            bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    }
    return 0;
}

static void wakes(struct task_struct *task)
{
    if (!is_target(task))
        return;
    struct task_struct *waker = bpf_get_current_task_btf();
    struct record_event *e = event(RECORD_WAKES, task, waker);
    if (!e)
        return;
    e->other = waker->pid;
    e->other_pid = waker->tgid;
    if (is_target(waker))
        add_call(e, waker);
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* In the context of the waker, unlike sched_wakeup. */
SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
    wakes(task);
    return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(woken_new, struct task_struct *task)
{
    wakes(task);
    return 0;
}
