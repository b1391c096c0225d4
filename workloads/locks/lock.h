/* SPDX-License-Identifier: MIT */
// One interface for all the spinlocks of this folder. all.h has the table of them, and explains why
// the files are included twice.
#ifndef LISSOM_WORKLOADS_LOCK_H
#define LISSOM_WORKLOADS_LOCK_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../sync.h"

// What a thread brings along to a lock: one for each thread and lock, zeroed but for `index` and
// `numa`. It must live as long as the lock, because some locks (CLH) leave a node with another
// thread.
struct lock_node {
    long index; // of the thread among those that use this lock, from 0
    long numa;  // the NUMA node that the thread is taken to be on; < 0: where it really is
    alignas(LINE) unsigned char space[2 * LINE];
};

struct lock_kind {
    const char *name;
    int pauses; // do its wait loops contain a `pause`?
    size_t size,
        per_thread; // bytes of a lock: size + per_thread * threads, zeroed, aligned to LINE
    void (*init)(void *lock, long threads);
    void (*lock)(void *lock, struct lock_node *self);
    void (*unlock)(void *lock, struct lock_node *self);
};

#if defined __x86_64__ || defined __i386__
#define CPU_PAUSE() __asm__ volatile("pause")
#elif defined __aarch64__
#define CPU_PAUSE() __asm__ volatile("yield")
#else
#define CPU_PAUSE() __asm__ volatile("")
#endif

// The node's space as a lock's own type, which has to fit.
#define SPACE(type, node) ((type *)(void *)(node)->space)
#define FITS(type) _Static_assert(sizeof(type) <= 2 * LINE, "does not fit into struct lock_node")

#endif
