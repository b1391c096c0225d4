/* SPDX-License-Identifier: MIT */
// The interface of all spinlocks of this folder. all.h has the table of them, and says why the
// files are included twice.
#ifndef LISSOM_WORKLOADS_LOCK_H
#define LISSOM_WORKLOADS_LOCK_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../sync.h"

// The state of one thread at one lock: zeroed but for `index` and `numa`. It must live as long as
// the lock, because some locks (CLH) leave a node with another thread.
struct lock_node {
    long index; // number of the thread among the users of this lock, from 0
    long numa;  // NUMA node to assume for the thread; < 0: the real one
    alignas(LINE) unsigned char space[2 * LINE];
};

struct lock_kind {
    const char *name;
    int pauses; // whether its wait loops contain a `pause`
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

// The node's space as a lock's own type; FITS asserts that the type fits.
#define SPACE(type, node) ((type *)(void *)(node)->space)
#define FITS(type) _Static_assert(sizeof(type) <= 2 * LINE, "does not fit into struct lock_node")

#endif
