/* SPDX-License-Identifier: GPL-2.0 */
/* The part of the kernel that the programs use, and no more. Offsets, and whether a field exists,
 * are found when a program is loaded (CO-RE), so layouts need not be those of any kernel. A name
 * that ends in three underscores and a word is that of another version. */
#pragma once

#include <stdbool.h>

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
#define NULL ((void *)0)

/* From linux/bpf.h. */
enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
    BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_STACK = 23,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
    BPF_ANY = 0,
    BPF_NOEXIST = 1,
    BPF_F_NO_PREALLOC = 1,
    BPF_F_MMAPABLE = 1024,
    BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* From linux/sched.h. */
enum {
    PF_KTHREAD = 0x00200000,
    TASK_RUNNING = 0,
    TASK_DEAD = 0x80,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
    unsigned int __state;
    unsigned int flags;
    int exit_state;
    int pid;
    int tgid;
    char comm[16];
};

/* Before Linux 5.14. */
struct task_struct___state {
    long state;
};

struct bpf_iter_meta;

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

#pragma clang attribute pop
