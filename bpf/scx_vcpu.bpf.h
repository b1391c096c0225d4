/* SPDX-License-Identifier: GPL-2.0 */
/* vCPU threads whose guests spin. The registers of such a thread show nothing: an interrupt takes
 * the CPU out of the guest, and is handled in the kernel. But the CPU may notice that a guest
 * repeats PAUSE (Intel: pause-loop exiting, AMD: pause filter). Or the guest may report that it
 * spins (an enlightenment of Hyper-V). KVM then calls kvm_vcpu_on_spin on the thread of that vCPU,
 * to yield to another one of the same guest. The thread is marked, and the next scan preempts it
 * for any thread that wants its CPU, KVM's or not.
 *
 * Not at once, because inside of a traced function a kick of the own CPU bypasses the scheduler.
 * The mark ends with a scan, or with the thread's turn: a vCPU that spun may have got its lock
 * since. */
#pragma once

#include "scx_state.bpf.h"

/* Loaded only if KVM exists and has the function (crates/scx/src/vcpus.rs). */
SEC("fentry/kvm_vcpu_on_spin")
int BPF_PROG(guest_spins)
{
    struct task_ctx *t = try_lookup_task_ctx(bpf_get_current_task_btf());
    if (t)
        t->guest_spins = true;
    return 0;
}

/* Return the running thread if its guest has spun since the last scan, and clear its mark;
 * otherwise NULL. */
static struct task_ctx *spinning_vcpu(void)
{
    struct task_ctx *t = try_lookup_task_ctx(bpf_get_current_task_btf());
    if (!t || !t->guest_spins)
        return NULL;
    t->guest_spins = false;
    return t;
}
