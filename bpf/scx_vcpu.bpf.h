/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that run a guest's CPU, and spin there. Such a thread's registers say nothing: what
 * interrupts it brings the CPU back from the guest, and is taken in the kernel. But where the CPU
 * notices that a guest repeats PAUSE (Intel: pause-loop exiting, AMD: pause filter), or the guest
 * says itself that it spins (an enlightenment of Hyper-V), KVM calls kvm_vcpu_on_spin on the thread
 * of that vCPU, to yield to another one of the same guest. That is noted with the thread, and the
 * next look at it has it give way to whoever wants its CPU, KVM's or not.
 *
 * Not at once, because a kick of the own CPU from inside of a function that is traced bypasses the
 * scheduler. The note does not outlast a look, nor the thread's turn: a vCPU that spun before may
 * have got its lock since. */
#pragma once

/* Loaded only where KVM is there and has the function (src/sched/vcpus.rs). */
SEC("fentry/kvm_vcpu_on_spin")
int BPF_PROG(guest_spins)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());
    if (t) t->guest_spins = true;
    return 0;
}

/* The running thread, if its guest has spun since the last look. The note is taken. */
static struct thread *spinning_vcpu(void)
{
    struct thread *t = thread_of(bpf_get_current_task_btf());
    if (!t || !t->guest_spins) return NULL;
    t->guest_spins = false;
    return t;
}
