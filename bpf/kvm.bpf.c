// SPDX-License-Identifier: GPL-2.0
/* Count what KVM does for each VM: entries and exits, pause-loop exits and their cost, directed
 * yields, halt polling.
 *
 * The vCPU of a thread is learnt at a VM entry and stored with the thread, because later events do
 * not show it: kvm_exit's arguments differ between kernels, and kvm_vcpu_wakeup has none. An exit
 * whose entry was not seen is not counted.
 *
 * Counts are per CPU and VM, and changed by atomic additions: some of the events can preempt
 * others. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kvm.h"

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

struct kvm {
    atomic_t online_vcpus;
};

struct kvm_vcpu_stat_generic {
    __u64 halt_attempted_poll, halt_successful_poll, halt_poll_success_ns, halt_poll_fail_ns;
};

struct kvm_vcpu_stat {
    struct kvm_vcpu_stat_generic generic;
};

struct kvm_vcpu {
    struct kvm *kvm;
    struct kvm_vcpu_stat stat;
};

union vmx_exit_reason {
    __u32 full;
};

struct vcpu_vmx {
    union vmx_exit_reason exit_reason;
    unsigned int ple_window;
};

/* Since Linux 6.16. */
struct vcpu_vt {
    union vmx_exit_reason exit_reason;
};

struct vcpu_vmx___vt {
    struct vcpu_vt vt;
};

struct vmcb_control_area {
    __u16 pause_filter_count;
    __u32 exit_code;
};

struct vmcb {
    struct vmcb_control_area control;
};

struct vcpu_svm {
    struct vmcb *vmcb;
};

#pragma clang attribute pop

enum {
    EXIT_REASON_PAUSE_INSTRUCTION = 40,
    SVM_EXIT_PAUSE = 0x77,
};

const volatile struct kvm_config config SEC(".rodata.config");
struct kvm_state state;

static const struct kvm_counts nothing;

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1024);
    __type(key, struct kvm_vm);
    __type(value, struct kvm_counts);
} vms SEC(".maps");

/* The vCPU that a thread runs. */
struct vcpu {
    struct kvm_vm vm;
    __u64 vcpu;
    __u64 entered;     /* 0: not in the guest */
    __u64 exited, ran; /* time of the last exit, and time in the guest before it */
    __u64 polls, poll_hits, poll_hit_ns, poll_miss_ns; /* KVM's statistics when last read */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct vcpu);
} vcpus SEC(".maps");

/* A CPU on which a vCPU has exited by PAUSE, and which has run nothing useful since. */
struct paused {
    __u64 since; /* 0: no such exit */
    __u64 vcpu;
    struct kvm_vm vm;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct paused);
} paused SEC(".maps");

#define ADD(counter, n) __sync_fetch_and_add(&(counter), n)

static struct kvm_counts *counts_of(struct kvm_vm *vm)
{
    struct kvm_counts *counts = bpf_map_lookup_elem(&vms, vm);
    if (counts)
        return counts;
    bpf_map_update_elem(&vms, vm, &nothing, BPF_NOEXIST);
    counts = bpf_map_lookup_elem(&vms, vm);
    if (!counts)
        ADD(state.lost, 1);
    return counts;
}

static struct vcpu *current_vcpu(void)
{
    return bpf_task_storage_get(&vcpus, bpf_get_current_task_btf(), NULL, 0);
}

static struct paused *paused_here(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&paused, &zero);
}

static __u32 bucket(__u64 ns)
{
    if (ns >> 41)
        return KVM_BUCKETS - 1;
    __u32 log = 0;
    for (__u32 bits = 32; bits; bits /= 2)
        if (ns >> log >> bits)
            log += bits;
    if (log < 10)
        return 0;
    return 1 + (log - 10) * 2 + ((ns >> (log - 1)) & 1);
}

static void count_in(__u64 *histogram, __u64 ns)
{
    __u32 i = bucket(ns);
    if (i < KVM_BUCKETS)
        ADD(histogram[i], 1);
}

/* End the switch: the CPU does something useful again. */
static void end_pause(struct paused *pause, __u64 now, bool entered, __u64 vcpu)
{
    __u64 since = pause->since;
    pause->since = 0;
    struct kvm_vm vm = pause->vm;
    struct kvm_counts *counts = counts_of(&vm);
    if (!counts)
        return;
    __u64 time = now > since ? now - since : 0;
    ADD(counts->switch_ns, time);
    count_in(counts->switches, time);
    if (!entered)
        ADD(counts->left, 1);
    else if (pause->vcpu == vcpu)
        ADD(counts->back_to_same, 1);
    else
        ADD(counts->back_to_other, 1);
}

/* Add the growth of KVM's own statistics since they were last read. counts may be NULL. */
static void take_polls(struct vcpu *thread, struct kvm_counts *counts)
{
    struct kvm_vcpu *vcpu = (void *)thread->vcpu;
    __u64 polls = BPF_CORE_READ(vcpu, stat.generic.halt_attempted_poll);
    __u64 hits = BPF_CORE_READ(vcpu, stat.generic.halt_successful_poll);
    __u64 hit_time = BPF_CORE_READ(vcpu, stat.generic.halt_poll_success_ns);
    __u64 miss_time = BPF_CORE_READ(vcpu, stat.generic.halt_poll_fail_ns);
    /* Smaller: another vCPU at the address of an old one. */
    if (counts && polls >= thread->polls) {
        ADD(counts->polls, polls - thread->polls);
        ADD(counts->poll_hits, hits - thread->poll_hits);
        ADD(counts->poll_hit_ns, hit_time - thread->poll_hit_ns);
        ADD(counts->poll_miss_ns, miss_time - thread->poll_miss_ns);
    }
    thread->polls = polls;
    thread->poll_hits = hits;
    thread->poll_hit_ns = hit_time;
    thread->poll_miss_ns = miss_time;
}

static void meet(struct vcpu *thread, struct kvm_vcpu *vcpu)
{
    thread->vcpu = (__u64)vcpu;
    thread->vm.kvm = (__u64)vcpu->kvm;
    thread->vm.pid = bpf_get_current_pid_tgid() >> 32;
    thread->vm.pad = 0;
    thread->exited = 0;
    take_polls(thread, NULL);
    struct kvm_counts *counts = counts_of(&thread->vm);
    if (counts)
        counts->vcpus = vcpu->kvm->online_vcpus.counter;
}

SEC("tp_btf/kvm_entry")
int BPF_PROG(entered, struct kvm_vcpu *vcpu)
{
    /* The verifier requires this if the tracepoint is a module's. */
    if (!vcpu)
        return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    struct vcpu *thread = bpf_task_storage_get(&vcpus, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread) {
        ADD(state.lost, 1);
        return 0;
    }
    if (thread->vcpu != (__u64)vcpu || thread->vm.kvm != (__u64)vcpu->kvm)
        meet(thread, vcpu);
    struct kvm_counts *counts = counts_of(&thread->vm);
    if (!counts)
        return 0;
    ADD(counts->entries, 1);
    __u64 now = bpf_ktime_get_ns();
    struct paused *pause = paused_here();
    if (pause && pause->since)
        end_pause(pause, now, true, thread->vcpu);
    thread->entered = now;
    return 0;
}

/* Return whether the last exit was by PAUSE. Sets *window to the one that led to it. The vCPU is
 * the first member of its container, for both vendors. */
static bool is_pause(struct vcpu *thread, __u64 *window)
{
    if (config.vendor == KVM_INTEL) {
        struct vcpu_vmx *vmx = (void *)thread->vcpu;
        struct vcpu_vmx___vt *newer = (void *)vmx;
        __u32 reason = bpf_core_field_exists(newer->vt) ? BPF_CORE_READ(newer, vt.exit_reason.full)
                                                        : BPF_CORE_READ(vmx, exit_reason.full);
        if (reason != EXIT_REASON_PAUSE_INSTRUCTION)
            return false;
        *window = BPF_CORE_READ(vmx, ple_window);
        return true;
    }
    if (config.vendor == KVM_AMD) {
        struct vcpu_svm *svm = (void *)thread->vcpu;
        struct vmcb *vmcb = BPF_CORE_READ(svm, vmcb);
        if (BPF_CORE_READ(vmcb, control.exit_code) != SVM_EXIT_PAUSE)
            return false;
        *window = BPF_CORE_READ(vmcb, control.pause_filter_count);
        return true;
    }
    return false;
}

static void pause_exit(struct vcpu *thread, struct kvm_counts *counts, __u64 window)
{
    ADD(counts->pause_exits, 1);
    ADD(counts->window_sum, window);
    __u64 spun = thread->ran, most = config.unit * window >> 20;
    if (spun > most)
        spun = most;
    ADD(counts->spin_ns, spun);
    struct paused *pause = paused_here();
    if (!pause)
        return;
    pause->vm = thread->vm;
    pause->vcpu = thread->vcpu;
    pause->since = thread->exited;
}

/* Counts all exits here, not those by PAUSE in the functions that handle them. A program at a
 * function can be preempted, and is then skipped for the next event. */
SEC("tp_btf/kvm_exit")
int BPF_PROG(exited)
{
    struct vcpu *thread = current_vcpu();
    if (!thread || !thread->entered)
        return 0;
    __u64 now = bpf_ktime_get_ns(), window;
    thread->exited = now;
    thread->ran = now - thread->entered;
    thread->entered = 0;
    struct kvm_counts *counts = counts_of(&thread->vm);
    if (!counts)
        return 0;
    ADD(counts->exits, 1);
    ADD(counts->guest_ns, thread->ran);
    if (is_pause(thread, &window))
        pause_exit(thread, counts, window);
    return 0;
}

/* Only KVM calls yield_to; kvm_vcpu_yield_to may be inlined. */
SEC("fexit/yield_to")
int BPF_PROG(yielded, struct task_struct *to, bool preempt, int result)
{
    struct vcpu *thread = current_vcpu();
    struct kvm_counts *counts = thread ? counts_of(&thread->vm) : NULL;
    if (!counts)
        return 0;
    ADD(counts->yields, 1);
    if (result > 0)
        ADD(counts->yields_done, 1);
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    struct paused *pause = paused_here();
    if (!pause || !pause->since)
        return 0;
    if (!bpf_task_storage_get(&vcpus, next, NULL, 0))
        end_pause(pause, bpf_ktime_get_ns(), false, 0);
    return 0;
}

SEC("tp_btf/kvm_vcpu_wakeup")
int BPF_PROG(wakeup, __u64 ns, bool waited)
{
    struct vcpu *thread = current_vcpu();
    struct kvm_counts *counts = thread ? counts_of(&thread->vm) : NULL;
    if (!counts)
        return 0;
    ADD(counts->wakeups, 1);
    if (waited)
        ADD(counts->slept, 1);
    count_in(counts->halts, ns);
    take_polls(thread, counts);
    return 0;
}

SEC("tp_btf/kvm_halt_poll_ns")
int BPF_PROG(poll_window, bool grow, unsigned int id, unsigned int new, unsigned int old)
{
    struct vcpu *thread = current_vcpu();
    struct kvm_counts *counts = thread ? counts_of(&thread->vm) : NULL;
    if (!counts)
        return 0;
    if (grow)
        ADD(counts->poll_grows, 1);
    else
        ADD(counts->poll_shrinks, 1);
    ADD(counts->poll_window_sum, new);
    return 0;
}
