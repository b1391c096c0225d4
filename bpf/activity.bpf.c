// SPDX-License-Identifier: GPL-2.0
/* For how long each process has had how many runnable threads: running, or waiting for a CPU.
 * Kernel threads are not counted.
 *
 * Each thread has a flag that says whether it is counted as runnable, and only the program that
 * changes the flag changes the count. So it does not matter that sched_wakeup reports threads that
 * never left the run queue. Missed events are corrected at the thread's next switch, by its state.
 *
 * Memory for a thread is taken where that is harmless, at its fork: never under a run queue's lock.
 * A thread without memory is not counted. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "activity.h"
#include "state.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct thread {
    /* of its process's slot; 0: not known yet. If the slot has another one, it belongs to another
     * process by now */
    __u64 start;
    __u32 slot;
    __u32 adopted; /* 1: it is among the slot's threads, or about to be */
    __u32 runnable;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

/* The sizes of these three maps are set when they are created. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct activity);
} processes SEC(".maps");

/* pid -> slot */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} slots SEC(".maps");

/* Slots below `state.used` that are free again. */
struct {
    __uint(type, BPF_MAP_TYPE_STACK);
    __uint(max_entries, 1);
    __type(value, __u32);
} free_slots SEC(".maps");

struct activity_state state;

static struct activity *slot_of(__u32 slot) { return bpf_map_lookup_elem(&processes, &slot); }

/* Return the thread's process; NULL if the thread is not counted, or the process has ended. */
static struct activity *process_of(struct thread *thread)
{
    __u64 start = *(volatile __u64 *)&thread->start;
    if (start == 0)
        return NULL;
    struct activity *process = slot_of(thread->slot);
    return process && process->start == start ? process : NULL;
}

/* Add `by` to the number of runnable threads. */
static void count(struct activity *process, int by)
{
    __s32 before = __sync_fetch_and_add(&process->runnable, by), after = before + by;
    __s64 now = bpf_ktime_get_ns();
    /* Negative for a moment, if the changes of a pair come in the wrong order. */
    if (before < 0)
        before = 0;
    if (after < 0)
        after = 0;
    if (before > ACTIVITY_LAST)
        before = ACTIVITY_LAST;
    if (after > ACTIVITY_LAST)
        after = ACTIVITY_LAST;
    if (before == after)
        return;
    __sync_fetch_and_add(&process->time[before], now);
    __sync_fetch_and_add(&process->time[after], -now);
}

static void set_runnable(struct thread *thread, __u32 runnable)
{
    if (*(volatile __u32 *)&thread->runnable == runnable)
        return;
    struct activity *process = process_of(thread);
    if (process && __sync_lock_test_and_set(&thread->runnable, runnable) != runnable)
        count(process, runnable ? 1 : -1);
}

static struct thread *thread_of(struct task_struct *task)
{
    return task->flags & PF_KTHREAD ? NULL : bpf_task_storage_get(&threads, task, NULL, 0);
}

/* Set up a slot for a process that has none. Returns false if there is no room. */
static bool make_process(__u32 pid, __u32 *slot)
{
    if (bpf_map_pop_elem(&free_slots, slot) != 0) {
        *slot = __sync_fetch_and_add(&state.used, 1);
        if (!slot_of(*slot))
            __sync_fetch_and_add(&state.used, -1);
    }
    struct activity *process = slot_of(*slot);
    if (!process)
        return false;
    for (int i = 1; i <= ACTIVITY_LAST; i++)
        process->time[i] = 0;
    __u64 now = bpf_ktime_get_ns();
    process->pid = pid;
    process->execs = 0;
    process->threads = 0;
    process->runnable = 0;
    process->time[0] = -now;
    barrier();
    process->start = now;
    return true;
}

static void free_process(__u32 slot)
{
    struct activity *process = slot_of(slot);
    if (!process)
        return;
    process->start = 0;
    bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
}

/* Whether a thread's process has a slot. */
enum process {
    KNOWN, /* it has one, or there was no room for it */
    /* it has none. One of its number belongs to a process that has ended but is not freed yet */
    NEW,
    UNKNOWN, /* it may have one */
};

static bool find_process(__u32 pid, enum process is, __u32 *slot)
{
    __u32 *known = is == NEW ? NULL : bpf_map_lookup_elem(&slots, &pid);
    if (known) {
        *slot = *known;
        return true;
    }
    /* If its leader found no room, nothing would free the slot. */
    if (is == KNOWN)
        return false;
    if (!make_process(pid, slot)) {
        __sync_fetch_and_add(&state.lost, 1);
        return false;
    }
    if (bpf_map_update_elem(&slots, &pid, slot, is == NEW ? BPF_ANY : BPF_NOEXIST) == 0)
        return true;
    free_process(*slot);
    known = bpf_map_lookup_elem(&slots, &pid);
    if (known)
        *slot = *known;
    return known;
}

/* Count a thread from now on. Returns its storage, or NULL. Pre: no run queue's lock is held. */
static struct thread *adopt(struct task_struct *task, enum process is)
{
    if (task->flags & PF_KTHREAD)
        return NULL;
    struct thread *thread =
        bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread) {
        __sync_fetch_and_add(&state.lost, 1);
        return NULL;
    }
    if (__sync_lock_test_and_set(&thread->adopted, 1))
        return thread;
    __u32 slot;
    struct activity *process = find_process(task->tgid, is, &slot) ? slot_of(slot) : NULL;
    if (!process) {
        /* While existing threads are being found, the process may get a slot later: then the thread
         * is tried once more. */
        thread->adopted = 0;
        return NULL;
    }
    __sync_fetch_and_add(&process->threads, 1);
    thread->slot = slot;
    barrier();
    *(volatile __u64 *)&thread->start = process->start;
    return thread;
}

/* Stop counting a thread that has run for the last time. */
static void end(struct thread *thread)
{
    set_runnable(thread, 0);
    struct activity *process = process_of(thread);
    if (process && __sync_lock_test_and_set(&thread->adopted, 0))
        __sync_fetch_and_add(&process->threads, -1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
    adopt(child, child->pid == child->tgid ? NEW : KNOWN);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task)
{
    /* A kernel thread may become a process by this; any other thread has been adopted before. It
     * runs. */
    struct thread *thread = adopt(task, UNKNOWN);
    if (!thread)
        return 0;
    set_runnable(thread, 1);
    struct activity *process = process_of(thread);
    if (process)
        __sync_fetch_and_add(&process->execs, 1);
    return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(woken_new, struct task_struct *task)
{
    struct thread *thread = thread_of(task);
    if (thread)
        set_runnable(thread, 1);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(woken, struct task_struct *task)
{
    struct thread *thread = thread_of(task);
    if (thread)
        set_runnable(thread, 1);
    return 0;
}

/* Runs under the run queue's lock, so `prev` cannot be woken meanwhile. Reads its state instead of
 * taking it from the argument of newer kernels: up to 6.13 that does not show that a signal has
 * kept the thread runnable. */
SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev)
{
    struct thread *thread = thread_of(prev);
    if (thread) {
        __u32 state = state_of(prev);
        if (state & TASK_DEAD)
            end(thread);
        else
            set_runnable(thread, preempt || state == TASK_RUNNING);
    }
    return 0;
}

/* Some time after the thread's last switch. The leader of a process is freed last. A leader that an
 * exec in another thread has replaced is none any more. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(freed, struct task_struct *task)
{
    __u32 pid = task->tgid;
    if (task->pid != task->tgid)
        return 0;
    struct thread *thread = thread_of(task);
    if (!thread || !process_of(thread))
        return 0;
    __u32 slot = thread->slot, *known = bpf_map_lookup_elem(&slots, &pid);
    if (known && *known == slot)
        bpf_map_delete_elem(&slots, &pid);
    free_process(slot);
    return 0;
}

/* Adopt threads that existed before. Also leaders that have ended, since freeing them frees the
 * slot. The state is read again afterwards: a thread that went to sleep before its flag was set has
 * not cleared it. */
SEC("iter/task")
int found(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    if (!task || (task->exit_state && task->pid != task->tgid))
        return 0;
    struct thread *thread = adopt(task, UNKNOWN);
    if (!thread)
        return 0;
    if (state_of(task) == TASK_RUNNING) {
        set_runnable(thread, 1);
        if (state_of(task) != TASK_RUNNING)
            set_runnable(thread, 0);
    }
    if (task->exit_state)
        end(thread);
    return 0;
}
