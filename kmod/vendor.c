// SPDX-License-Identifier: GPL-2.0
/* Where KVM keeps a vCPU's window, and how the hardware gets it. */
#include <linux/mm.h>
#include <linux/uaccess.h>
#include <asm/svm.h>
#include <asm/vmx.h>

#include "lissom_ple.h"

struct ple_vendor ple_vendor;

/* Offsets from the vCPU in struct vcpu_vmx, or in struct vcpu_svm. */
static u32 window_at, dirty_at, vmcb_at;
static u32 filter_threshold;

/* Return a parameter with which KVM was loaded; -1 if there is no such parameter. */
static long long parameter(const char *module, const char *name)
{
	long long value = -1;
	char path[96], *text;
	size_t size;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	text = read_file(path, &size);
	if (IS_ERR(text))
		return -1;
	if (kstrtoll(strim(text), 10, &value))
		value = -1;
	kvfree(text);
	return value;
}

static int find_parameters(const char *module, const char *first, const char *highest)
{
	long long window = parameter(module, first), most = parameter(module, highest);

	if (window < 0 || most < 0) {
		pr_fail("%s has no parameters %s and %s: is it loaded?\n", module, first, highest);
		return -EOPNOTSUPP;
	}
	ple_vendor.window = window;
	ple_vendor.largest_own = max(window, most);
	return 0;
}

static int no_ple(const char *why)
{
	pr_fail("no pause-loop exiting here: %s\n", why);
	return -ENODEV;
}

/*
 * Layouts that headers declare are compiled in. With checksums of symbols, the kernel also loads a
 * module that was built for another kernel of nearly the same version. So they are compared.
 */
#define MEMBER(type, member) \
	{ #type, #member, offsetof(struct type, member), sizeof_field(struct type, member) }
static const struct {
	const char *type, *member;
	u32 offset, size;
} compiled[] = {
	MEMBER(kvm_vcpu, kvm),
	MEMBER(kvm_vcpu, stat),
	MEMBER(kvm_vcpu, arch),
	MEMBER(kvm_vcpu_stat, exits),
	MEMBER(kvm_vcpu_arch, hflags),
	MEMBER(kvm, arch),
	MEMBER(kvm_arch, vm_type),
	MEMBER(task_struct, tgid),
	MEMBER(task_struct, preempt_notifiers),
};

static int check_compiled(const struct btf_file *file)
{
	int i, at;

	for (i = 0; i < ARRAY_SIZE(compiled); i++) {
		at = btf_member(file, compiled[i].type, compiled[i].member, MEMBER_ANY,
				compiled[i].size, NULL);
		if (at == compiled[i].offset)
			continue;
		if (at >= 0)
			pr_fail("this kernel's struct %s is another one than this module was built "
				"with: build it again\n",
				compiled[i].type);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int find_intel(const struct btf_file *file)
{
	int vcpu =
		btf_member(file, "vcpu_vmx", "vcpu", MEMBER_STRUCT, sizeof(struct kvm_vcpu), NULL);
	int window = btf_member(file, "vcpu_vmx", "ple_window", MEMBER_INTEGER, sizeof(u32), NULL);
	int dirty = btf_member(file, "vcpu_vmx", "ple_window_dirty", MEMBER_INTEGER, sizeof(bool),
			       NULL);

	if (vcpu < 0 || window < 0 || dirty < 0)
		return -EOPNOTSUPP;
	window_at = window - vcpu;
	dirty_at = dirty - vcpu;
	ple_vendor.largest = U32_MAX;
	if (find_parameters("kvm_intel", "ple_window", "ple_window_max"))
		return -EOPNOTSUPP;
	if (!ple_vendor.window || parameter("kvm_intel", "ple_gap") <= 0)
		return no_ple("kvm_intel's ple_gap or ple_window is 0");
	return 0;
}

static int find_amd(const struct btf_file *file)
{
	int vcpu =
		btf_member(file, "vcpu_svm", "vcpu", MEMBER_STRUCT, sizeof(struct kvm_vcpu), NULL);
	int vmcb = btf_member(file, "vcpu_svm", "vmcb", MEMBER_POINTER, sizeof(void *), "vmcb");
	/* The VMCB is the hardware's, and a header declares it. Checking that the kernel's is the
	 * same costs nothing. */
	int count = btf_member(file, "vmcb_control_area", "pause_filter_count", MEMBER_INTEGER,
			       sizeof(u16), NULL);
	int clean =
		btf_member(file, "vmcb_control_area", "clean", MEMBER_INTEGER, sizeof(u32), NULL);

	if (vcpu < 0 || vmcb < 0 || count < 0 || clean < 0)
		return -EOPNOTSUPP;
	if (count != offsetof(struct vmcb_control_area, pause_filter_count) ||
	    clean != offsetof(struct vmcb_control_area, clean)) {
		pr_fail("this kernel's struct vmcb_control_area is another one than this module "
			"was built with\n");
		return -EOPNOTSUPP;
	}
	vmcb_at = vmcb - vcpu;
	ple_vendor.largest = U16_MAX;
	if (find_parameters("kvm_amd", "pause_filter_count", "pause_filter_count_max"))
		return -EOPNOTSUPP;
	if (!ple_vendor.window)
		return no_ple("this CPU has no pause filter, or kvm_amd's pause_filter_count is 0");
	filter_threshold = parameter("kvm_amd", "pause_filter_thresh");
	return 0;
}

int ple_vendor_init(void)
{
	struct btf_file kernel, module;
	int error;

	ple_vendor.is_intel = boot_cpu_has(X86_FEATURE_VMX);
	if (!ple_vendor.is_intel && !boot_cpu_has(X86_FEATURE_SVM))
		return no_ple("this CPU has neither VMX nor SVM");
	error = btf_open(&kernel, "vmlinux", NULL);
	if (error)
		return error;
	error = btf_open(&module, ple_vendor.is_intel ? "kvm_intel" : "kvm_amd", &kernel);
	if (!error) {
		error = check_compiled(&module);
		if (!error)
			error = ple_vendor.is_intel ? find_intel(&module) : find_amd(&module);
		btf_close(&module);
	}
	btf_close(&kernel);
	WRITE_ONCE(ple_vendor.ready, !error);
	return error;
}

static u32 *vmx_window(struct kvm_vcpu *vcpu)
{
	return (void *)vcpu + window_at;
}

static u8 *vmx_dirty(struct kvm_vcpu *vcpu)
{
	return (void *)vcpu + dirty_at;
}

static struct vmcb_control_area *control(struct kvm_vcpu *vcpu)
{
	struct vmcb *vmcb = *(struct vmcb **)((void *)vcpu + vmcb_at);

	return &vmcb->control;
}

/* Read the vCPU's VMCS, which is the CPU's current one from before kvm_entry until after kvm_exit.
 * Returns 0 on failure. */
static u32 vmcs(unsigned long field)
{
	unsigned long value = 0;
	bool failed;

	asm volatile("vmread %[field], %[value]"
		     : [value] "=r"(value), "=@ccbe"(failed)
		     : [field] "r"(field));
	return failed ? 0 : value;
}

u32 ple_window(struct kvm_vcpu *vcpu)
{
	return ple_vendor.is_intel ? READ_ONCE(*vmx_window(vcpu))
				   : control(vcpu)->pause_filter_count;
}

void ple_set_window(struct kvm_vcpu *vcpu, u32 window)
{
	if (ple_vendor.is_intel) {
		WRITE_ONCE(*vmx_window(vcpu), window);
		/* vmx_vcpu_run writes it into the VMCS, after the tracepoint kvm_entry. */
		WRITE_ONCE(*vmx_dirty(vcpu), 1);
	} else {
		control(vcpu)->pause_filter_count = window;
		/* Bit 0 is VMCB_INTERCEPTS, to which the pause filter belongs. */
		control(vcpu)->clean &= ~1u;
	}
}

bool ple_had_window(struct kvm_vcpu *vcpu, u32 window)
{
	return ple_vendor.is_intel ? vmcs(PLE_WINDOW) == window
				   : control(vcpu)->pause_filter_count == window;
}

bool ple_is_why(struct kvm_vcpu *vcpu)
{
	/* All 32 bits: if the highest one is set, the entry has failed. */
	return ple_vendor.is_intel ? vmcs(VM_EXIT_REASON) == EXIT_REASON_PAUSE_INSTRUCTION
				   : control(vcpu)->exit_code == SVM_EXIT_PAUSE;
}

bool ple_is_plausible(struct kvm_vcpu *vcpu, bool has_never_run)
{
	u32 window;

	/* At a wrong offset, what is read as a pointer may be anything. */
	if (!ple_vendor.is_intel) {
		struct vmcb *vmcb = *(struct vmcb **)((void *)vcpu + vmcb_at);
		u16 count;

		if (!PAGE_ALIGNED(vmcb) ||
		    get_kernel_nofault(count, &vmcb->control.pause_filter_count))
			return false;
		/* VMRUN fails without both, so a page of something else hardly has them. */
		if (!(vmcb->control.intercepts[INTERCEPT_VMRUN / 32] & BIT(INTERCEPT_VMRUN % 32)) ||
		    !vmcb->control.iopm_base_pa || !PAGE_ALIGNED(vmcb->control.iopm_base_pa))
			return false;
	}
	window = ple_window(vcpu);
	/* The VMM has disabled these exits (KVM_X86_DISABLE_EXITS_PAUSE). */
	if (!window)
		return true;
	if (window < ple_vendor.window || window > ple_vendor.largest_own)
		return false;
	/* KVM only adapts windows of vCPUs that have exited. */
	if (has_never_run && window != ple_vendor.window)
		return false;
	if (!ple_vendor.is_intel)
		return control(vcpu)->pause_filter_thresh == filter_threshold;
	if (*vmx_dirty(vcpu))
		return *vmx_dirty(vcpu) == 1;
	return vmcs(PLE_WINDOW) == window;
}
