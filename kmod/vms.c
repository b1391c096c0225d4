// SPDX-License-Identifier: GPL-2.0
/*
 * Records of the VMs and vCPUs that have been entered, and the work at entries and exits.
 *
 * A window that was asked for is in the vCPU from one entry to the next exit. The vCPU's own thread
 * sets and restores it, with interrupts off. Outside of the guest the vCPU always has KVM's own
 * window. So KVM's own adaptation continues undisturbed. A vCPU that does not run needs no repair
 * when its window is given up or the module is unloaded.
 *
 * `vcpu` and `kvm` of a record are only compared. Only the thread of a vCPU follows its pointer,
 * which it has as the tracepoint's argument anyway. So a record that outlives its VM does no harm.
 */
#include <linux/hashtable.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <asm/msr.h>

#include "lissom_ple.h"

#ifdef CONFIG_PREEMPT_RT
#error "records are allocated with interrupts off, which PREEMPT_RT does not allow"
#endif

struct vm {
	struct list_head node; /* in `vms` */
	struct list_head vcpus;
	const struct kvm *kvm;
	pid_t pid;
	u64 id;
	u32 window;	    /* asked for; 0: none */
	const void *holder; /* that asked */
	struct rcu_head rcu;
};

/* Only the vCPU's thread writes counters, except `switches`. */
struct vcpu {
	struct hlist_node hashed; /* in `vcpus` */
	struct list_head node;	  /* in vm->vcpus */
	const struct kvm_vcpu *vcpu;
	struct vm *vm;
	u32 own;	  /* KVM's window at the last entry */
	u32 in_force;	  /* in force in the guest */
	bool is_replaced; /* the vCPU has the window that was asked for */
	u64 entries, applied, ple, spun, before, guest;
	atomic64_t switches;
	struct rcu_head rcu;
};

/* The state of a CPU. Other CPUs only remove records, when their VM is destroyed. */
struct here {
	struct vcpu *inside; /* vCPU in the guest */
	u64 entered;
	struct vcpu *left; /* exited for a pause loop; nothing was entered since */
	u64 since;
};

static DEFINE_PER_CPU(struct here, heres);
static DEFINE_HASHTABLE(vcpus, 10);
static LIST_HEAD(vms);
static DEFINE_RAW_SPINLOCK(lock); /* protects changes of `vcpus`, `vms`, windows and holders */
static u64 last_id;

bool ple_is_refused;
atomic_long_t ple_missed;

static struct vcpu *find(const struct kvm_vcpu *key)
{
	struct vcpu *v;

	hash_for_each_possible_rcu_notrace(vcpus, v, hashed, (unsigned long)key)
		if (v->vcpu == key)
			return v;
	return NULL;
}

/* Pre: `lock` is held. */
static struct vm *find_vm(const struct kvm *kvm)
{
	struct vm *vm;

	list_for_each_entry(vm, &vms, node)
		if (vm->kvm == kvm)
			return vm;
	return NULL;
}

/* Add a record; NULL: no memory. Runs in the vCPU's thread: no other one adds a record of the same
 * vCPU, and `current` is a thread of the VMM. */
static struct vcpu *add(const struct kvm_vcpu *key)
{
	struct vcpu *v = kzalloc(sizeof(*v), GFP_NOWAIT | __GFP_NOWARN);
	struct vm *fresh = kzalloc(sizeof(*fresh), GFP_NOWAIT | __GFP_NOWARN);
	unsigned long flags;

	if (!v || !fresh) {
		kfree(v);
		kfree(fresh);
		return NULL;
	}
	v->vcpu = key;
	raw_spin_lock_irqsave(&lock, flags);
	v->vm = find_vm(key->kvm);
	if (!v->vm) {
		v->vm = fresh;
		fresh->kvm = key->kvm;
		fresh->pid = task_tgid_nr(current);
		fresh->id = ++last_id;
		INIT_LIST_HEAD(&fresh->vcpus);
		list_add_tail(&fresh->node, &vms);
		fresh = NULL;
	}
	list_add_tail(&v->node, &v->vm->vcpus);
	hash_add_rcu(vcpus, &v->hashed, (unsigned long)key);
	raw_spin_unlock_irqrestore(&lock, flags);
	kfree(fresh);
	return v;
}

/* End the switch: the CPU that a vCPU has left for a pause loop has found something to do. */
static void end_switch(struct here *here, u64 now)
{
	struct vcpu *v;

	if (!READ_ONCE(here->left))
		return;
	v = xchg(&here->left, NULL);
	if (v)
		atomic64_add(now - here->since, &v->switches);
}

void ple_turn_away(void)
{
	end_switch(this_cpu_ptr(&heres), rdtsc());
}

static void refuse(const struct kvm_vcpu *vcpu)
{
	if (xchg(&ple_is_refused, true))
		return;
	pr_fail("a vCPU of process %d has no window that KVM would give it: is this another KVM "
		"than its BTF says? "
		"No window is changed from now on\n",
		task_tgid_nr(current));
}

/* Return whether this guest is of a supported kind. */
static bool is_ours(struct kvm_vcpu *vcpu)
{
	/* Confidential guests keep their state elsewhere; a nested guest's pauses concern its own
	 * hypervisor. */
	return READ_ONCE(ple_vendor.ready) && vcpu->kvm->arch.vm_type == KVM_X86_DEFAULT_VM &&
	       !(vcpu->arch.hflags & HF_GUEST_MASK);
}

void ple_entry(void *data, struct kvm_vcpu *vcpu, bool force_immediate_exit)
{
	struct here *here = this_cpu_ptr(&heres);
	struct vcpu *v;
	u32 window;

	end_switch(here, rdtsc());
	WRITE_ONCE(here->inside, NULL);
	if (READ_ONCE(ple_is_refused) || !is_ours(vcpu))
		return;
	v = find(vcpu);
	if (!v) {
		if (!ple_is_plausible(vcpu, !vcpu->stat.exits)) {
			refuse(vcpu);
			return;
		}
		v = add(vcpu);
		if (!v) {
			atomic_long_inc(&ple_missed);
			return;
		}
	}
	/* Still replaced: the last entry has failed, without an exit. */
	if (!v->is_replaced)
		v->own = ple_window(vcpu);
	if (v->own && (v->own < ple_vendor.window || v->own > ple_vendor.largest_own)) {
		refuse(vcpu);
		return;
	}
	window = READ_ONCE(v->vm->window);
	if (window && v->own) {
		ple_set_window(vcpu, window);
		v->is_replaced = true;
	} else if (v->is_replaced) {
		ple_set_window(vcpu, v->own);
		v->is_replaced = false;
	}
	v->in_force = v->is_replaced ? window : v->own;
	WRITE_ONCE(here->inside, v);
	here->entered = rdtsc();
}

void ple_exit(void *data, struct kvm_vcpu *vcpu, u32 isa)
{
	u64 now = rdtsc();
	struct here *here = this_cpu_ptr(&heres);
	struct vcpu *v = READ_ONCE(here->inside);
	u64 stay;

	if (!v || v->vcpu != vcpu)
		return;
	WRITE_ONCE(here->inside, NULL);
	stay = now - here->entered;
	WRITE_ONCE(v->entries, v->entries + 1);
	WRITE_ONCE(v->guest, v->guest + stay);
	if (v->is_replaced) {
		if (ple_had_window(vcpu, v->in_force))
			WRITE_ONCE(v->applied, v->applied + 1);
		ple_set_window(vcpu, v->own);
		v->is_replaced = false;
	}
	if (!ple_is_why(vcpu))
		return;
	WRITE_ONCE(v->ple, v->ple + 1);
	WRITE_ONCE(v->spun, v->spun + v->in_force);
	WRITE_ONCE(v->before, v->before + stay);
	here->since = now;
	WRITE_ONCE(here->left, v);
}

/* Remove a VM. Its records are freed when no tracepoint can use them any more. Pre: `lock` is
 * held. */
static void drop(struct vm *vm)
{
	struct vcpu *v, *after;
	int cpu;

	list_for_each_entry_safe(v, after, &vm->vcpus, node) {
		hash_del_rcu(&v->hashed);
		/* Its vCPUs run no more, so no CPU gets hold of a record again. */
		for_each_possible_cpu(cpu) {
			struct here *here = per_cpu_ptr(&heres, cpu);

			cmpxchg(&here->left, v, NULL);
			cmpxchg(&here->inside, v, NULL);
		}
		kfree_rcu(v, rcu);
	}
	list_del(&vm->node);
	kfree_rcu(vm, rcu);
}

void ple_forget(struct kvm *kvm)
{
	unsigned long flags;
	struct vm *vm;

	raw_spin_lock_irqsave(&lock, flags);
	vm = find_vm(kvm);
	if (vm)
		drop(vm);
	raw_spin_unlock_irqrestore(&lock, flags);
}

void ple_forget_all(void)
{
	unsigned long flags;
	struct vm *vm, *after;

	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry_safe(vm, after, &vms, node)
		drop(vm);
	raw_spin_unlock_irqrestore(&lock, flags);
}

int ple_ask(pid_t pid, u32 window, const void *holder)
{
	int error = -ESRCH;
	unsigned long flags;
	struct vm *vm;

	if (READ_ONCE(ple_is_refused))
		return -EOPNOTSUPP;
	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry(vm, &vms, node) {
		if (vm->pid != pid)
			continue;
		if (vm->holder && vm->holder != holder) {
			error = -EBUSY;
			break;
		}
		WRITE_ONCE(vm->window, window);
		vm->holder = window ? holder : NULL;
		error = 0;
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return error;
}

static void nothing(void *unused)
{
}

void ple_release(const void *holder)
{
	bool had = false;
	unsigned long flags;
	struct vm *vm;

	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry(vm, &vms, node) {
		if (vm->holder != holder)
			continue;
		WRITE_ONCE(vm->window, 0);
		vm->holder = NULL;
		had = true;
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	/* An interrupt ends a stay in the guest, and its handler runs after kvm_exit. */
	if (had)
		on_each_cpu(nothing, NULL, 1);
}

static void add_up(struct vm_view *view, struct vm *vm)
{
	struct vcpu *v;
	u64 own = 0;

	*view = (struct vm_view){ .pid = vm->pid, .id = vm->id, .window = vm->window };
	list_for_each_entry(v, &vm->vcpus, node) {
		view->vcpus++;
		own += READ_ONCE(v->own);
		view->entries += READ_ONCE(v->entries);
		view->applied += READ_ONCE(v->applied);
		view->ple += READ_ONCE(v->ple);
		view->spun += READ_ONCE(v->spun);
		view->before += READ_ONCE(v->before);
		view->switches += atomic64_read(&v->switches);
		view->guest += READ_ONCE(v->guest);
	}
	view->own = own / max(view->vcpus, 1u);
}

u32 ple_views(struct vm_view *views, u32 room)
{
	unsigned long flags;
	struct vm *vm;
	u32 count = 0;

	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry(vm, &vms, node) {
		if (count < room)
			add_up(&views[count], vm);
		count++;
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return count;
}
