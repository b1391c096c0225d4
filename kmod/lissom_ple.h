/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window of its own for each VM's pause-loop exiting, and counters of its effect:
 * docs/operate/kvm-apple.md. User space decides which window is good.
 */
#ifndef LISSOM_PLE_H
#define LISSOM_PLE_H

#include <linux/kvm_host.h>
#include <linux/types.h>

#define pr_fail(...) pr_err("lissom_ple: " __VA_ARGS__)

/* read.c: return the whole file, NUL-terminated, or an error pointer. Free it with kvfree(). */
char *read_file(const char *path, size_t *size);

/* btf.c: the kernel's description of its own types. */
struct btf_file {
	char *data;
	size_t size;
	const void *types;
	const char *strings;
	u32 types_size, strings_size;
	u32 first_type, first_string; /* after those of `base` */
	u32 type_count;
	const struct btf_file *base;
};

/* How a member must be declared, through typedefs and qualifiers. */
enum member_kind { MEMBER_ANY, MEMBER_INTEGER, MEMBER_POINTER, MEMBER_STRUCT };

int btf_open(struct btf_file *file, const char *name, const struct btf_file *base);
void btf_close(struct btf_file *file);
/*
 * Return the offset in bytes of a member of this kind and size. A pointer must point to struct
 * `target`. Returns -EOPNOTSUPP, with a line in the log, for anything else.
 */
int btf_member(const struct btf_file *file, const char *type, const char *member,
	       enum member_kind kind, u32 size, const char *target);

/* vendor.c: where the window is, for Intel and AMD. Functions with a vCPU run in its own thread,
 * with interrupts off. */
struct ple_vendor {
	bool ready; /* all below is known */
	bool is_intel;
	/* KVM's parameters: a new vCPU's window, and the largest that KVM makes of it */
	u32 window, largest_own;
	u32 largest; /* that the hardware takes */
};
extern struct ple_vendor ple_vendor;

int ple_vendor_init(void);
u32 ple_window(struct kvm_vcpu *vcpu);
void ple_set_window(struct kvm_vcpu *vcpu, u32 window);
/* After an exit, return whether the hardware had this window (ple_had_window), and whether a pause
 * loop was the reason of the exit (ple_is_why). */
bool ple_had_window(struct kvm_vcpu *vcpu, u32 window);
bool ple_is_why(struct kvm_vcpu *vcpu);
/* Before an entry, return whether what is read of the vCPU is what KVM would have put there. */
bool ple_is_plausible(struct kvm_vcpu *vcpu, bool has_never_run);

/* vms.c: a record for each VM and vCPU that has been entered. */
struct vm_view {
	pid_t pid;
	u64 id;
	u32 vcpus;
	u32 window;  /* asked for; 0: KVM's own */
	u32 own;     /* KVM's own, mean of the vCPUs */
	u64 entries; /* that have ended */
	u64 applied; /* of those: the hardware had the window that was asked for */
	u64 ple;     /* exits for a pause loop */
	u64 spun;    /* sum of the windows of those, in the window's unit */
	/* time in the guest before those, since the entry. Times are in TSC cycles */
	u64 before;
	/* time from those until a vCPU is entered on the same CPU, or the CPU does something
	 * else */
	u64 switches;
	u64 guest; /* time in the guest */
};

extern bool ple_is_refused;	 /* a vCPU was not plausible: nothing is written any more */
extern atomic_long_t ple_missed; /* entries without a record, for lack of memory */

void ple_entry(void *data, struct kvm_vcpu *vcpu, bool force_immediate_exit);
void ple_exit(void *data, struct kvm_vcpu *vcpu, u32 isa);
/* This CPU switches to a thread that is no vCPU. */
void ple_turn_away(void);
void ple_forget(struct kvm *kvm);
void ple_forget_all(void);
/* Ask for a window; 0: KVM's own. Returns 0, -ESRCH, -EBUSY (another holder) or -EOPNOTSUPP (see
 * ple_is_refused). */
int ple_ask(pid_t pid, u32 window, const void *holder);
/* Give up all windows of this holder. They are KVM's own again on return. */
void ple_release(const void *holder);
/* Return the number of VMs. Stores the first `room` of them in `views`. */
u32 ple_views(struct vm_view *views, u32 room);

/* control.c: /dev/lissom_ple */
int control_register(void);
void control_unregister(void);

#endif
