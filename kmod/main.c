// SPDX-License-Identifier: GPL-2.0
/* Loading and unloading, and the probes in the kernel. */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "lissom_ple.h"

/* KVM exports these for its own modules, without a header for others. Their checksums are compared
 * when this module is loaded. */
extern struct tracepoint __tracepoint_kvm_entry, __tracepoint_kvm_exit;

static struct tracepoint *sched_switch;

/* A thread with preemption notifiers is inside of KVM_RUN. */
static void on_switch(void *data, bool preempt, struct task_struct *previous,
		      struct task_struct *next, unsigned int previous_state)
{
	if (hlist_empty(&next->preempt_notifiers))
		ple_turn_away();
}

static void find_sched_switch(struct tracepoint *tracepoint, void *unused)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		sched_switch = tracepoint;
}

static int on_destroy(struct kprobe *probe, struct pt_regs *regs)
{
	ple_forget((struct kvm *)regs->di);
	return 0;
}

static struct kprobe destroy = { .symbol_name = "kvm_arch_destroy_vm", .pre_handler = on_destroy };

/* kvm_intel or kvm_amd may be unloaded while there are no VMs, and loaded with other parameters. */
static int on_module(struct notifier_block *block, unsigned long what, void *data)
{
	const struct module *module = data;

	if (strcmp(module->name, ple_vendor.is_intel ? "kvm_intel" : "kvm_amd"))
		return NOTIFY_DONE;
	if (what == MODULE_STATE_GOING)
		WRITE_ONCE(ple_vendor.ready, false);
	else if (what == MODULE_STATE_LIVE)
		ple_vendor_init();
	return NOTIFY_DONE;
}

static struct notifier_block modules = { .notifier_call = on_module };

static void stop_probes(void)
{
	/* Entries first: exits restore what entries have replaced. */
	tracepoint_probe_unregister(&__tracepoint_kvm_entry, ple_entry, NULL);
	tracepoint_synchronize_unregister();
	tracepoint_probe_unregister(&__tracepoint_kvm_exit, ple_exit, NULL);
	tracepoint_probe_unregister(sched_switch, on_switch, NULL);
	tracepoint_synchronize_unregister();
}

static int start_probes(void)
{
	int error = tracepoint_probe_register(sched_switch, on_switch, NULL);

	if (error)
		return error;
	error = tracepoint_probe_register(&__tracepoint_kvm_exit, ple_exit, NULL);
	if (!error)
		error = tracepoint_probe_register(&__tracepoint_kvm_entry, ple_entry, NULL);
	if (error)
		stop_probes();
	return error;
}

static int __init start(void)
{
	int error = ple_vendor_init();

	if (error)
		return error;
	for_each_kernel_tracepoint(find_sched_switch, NULL);
	if (!sched_switch) {
		pr_fail("this kernel has no tracepoint sched_switch\n");
		return -EOPNOTSUPP;
	}
	error = register_kprobe(&destroy);
	if (error) {
		pr_fail("cannot see VMs end: no kprobe on %s (%d)\n", destroy.symbol_name, error);
		return -EOPNOTSUPP;
	}
	error = register_module_notifier(&modules);
	if (error)
		goto no_notifier;
	error = start_probes();
	if (error)
		goto no_probes;
	error = control_register();
	if (error)
		goto no_control;
	pr_info("lissom_ple: %s, KVM's own window is %u\n",
		ple_vendor.is_intel ? "kvm_intel" : "kvm_amd", ple_vendor.window);
	return 0;

no_control:
	stop_probes();
no_probes:
	unregister_module_notifier(&modules);
no_notifier:
	unregister_kprobe(&destroy);
	ple_forget_all();
	return error;
}

/* The device is not open, so no window is replaced: ple_release has restored them. */
static void __exit stop(void)
{
	control_unregister();
	stop_probes();
	unregister_module_notifier(&modules);
	unregister_kprobe(&destroy);
	ple_forget_all();
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A pause-loop window for each VM, and what pause-loop exits cost");
