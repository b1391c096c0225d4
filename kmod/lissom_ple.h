/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window of its own for each VM's pause-loop exiting, and counters of what it does:
 * docs/kvm-apple.md. What window is a good one is decided in user space.
 */
#ifndef LISSOM_PLE_H
#define LISSOM_PLE_H

#include <linux/kvm_host.h>
#include <linux/types.h>

#define pr_fail(...) pr_err("lissom_ple: " __VA_ARGS__)

/* read.c: the whole of a file, with a 0 behind it, or an error as a pointer. kvfree() it. */
char *read_file(const char *path, size_t *size);

/* btf.c: what the kernel says about its own types. */
struct btf_file {
	char *data;
	size_t size;
	const void *types;
	const char *strings;
	u32 types_size, strings_size;
	u32 first_type, first_string; /* what the file that it is based on has before it */
	u32 type_count;
	const struct btf_file *base;
};

/* How a member is declared, through typedefs and qualifiers. */
enum member_kind { MEMBER_ANY, MEMBER_INTEGER, MEMBER_POINTER, MEMBER_STRUCT };

int btf_open(struct btf_file *file, const char *name, const struct btf_file *base);
void btf_close(struct btf_file *file);
/*
 * The offset in bytes of a member that is of this kind and size (in a pointer's case: that points
 * to struct `target`). -EOPNOTSUPP, with a line in the log, for anything else.
 */
int btf_member(const struct btf_file *file, const char *type, const char *member,
	       enum member_kind kind, u32 size, const char *target);

/* vendor.c: where the window lives, for Intel and AMD. The functions are for the vCPU's own thread,
 * with interrupts off. */
struct ple_vendor {
	bool ready; /* everything below is known */
	bool is_intel;
	/* KVM's parameters: a new vCPU's window, and what KVM makes of it at most */
	u32 window, largest_own;
	u32 largest; /* that the hardware takes */
};
extern struct ple_vendor ple_vendor;

int ple_vendor_init(void);
u32 ple_window(struct kvm_vcpu *vcpu);
void ple_set_window(struct kvm_vcpu *vcpu, u32 window);
/* After an exit: whether the hardware had this window, and whether a pause loop is why it
 * exited. */
bool ple_had_window(struct kvm_vcpu *vcpu, u32 window);
bool ple_is_why(struct kvm_vcpu *vcpu);
/* Before an entry: whether what is read of the vCPU is what KVM would have put there. */
bool ple_is_plausible(struct kvm_vcpu *vcpu, bool has_never_run);

/* vms.c: a record for each VM and vCPU that has been entered. */
struct vm_view {
	pid_t pid;
	u64 id;
	u32 vcpus;
	u32 window;  /* that was asked for; 0: KVM's own */
	u32 own;     /* KVM's own, the mean of the vCPUs */
	u64 entries; /* that have ended */
	u64 applied; /* of those: the hardware was seen to have the window that was asked for */
	u64 ple;     /* exits for a pause loop */
	u64 spun;    /* the sum of the windows of those, in the window's unit */
	/* time in the guest before those, since the entry. Times are in TSC cycles */
	u64 before;
	/* time from those until a vCPU is entered on the same CPU, or it turns to something else */
	u64 switches;
	u64 guest; /* time in the guest */
};

extern bool ple_is_refused;	 /* a vCPU was not plausible: nothing is written any more */
extern atomic_long_t ple_missed; /* entries without a record, for lack of memory */

void ple_entry(void *data, struct kvm_vcpu *vcpu, bool force_immediate_exit);
void ple_exit(void *data, struct kvm_vcpu *vcpu, u32 isa);
/* This CPU goes on to something that is no vCPU. */
void ple_turn_away(void);
void ple_forget(struct kvm *kvm);
void ple_forget_all(void);
/* window 0: KVM's own again. -ESRCH, -EBUSY (another holder), -EOPNOTSUPP (see ple_is_refused). */
int ple_ask(pid_t pid, u32 window, const void *holder);
/* All windows of this holder are KVM's own again, when it returns. */
void ple_release(const void *holder);
/* Returns how many VMs there are; the first `room` of them are in `views`. */
u32 ple_views(struct vm_view *views, u32 room);

/* control.c: /dev/lissom_ple */
int control_register(void);
void control_unregister(void);

#endif
