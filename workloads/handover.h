/* SPDX-License-Identifier: MIT */
// A turn that threads pass on in a ring: one thread runs, each of the others sleeps at its own
// futex.
#ifndef LISSOM_WORKLOADS_HANDOVER_H
#define LISSOM_WORKLOADS_HANDOVER_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"

struct turn {
    alignas(LINE) _Atomic uint32_t mine;
};

// Sleep until thread `index` has the turn, and take it.
static void turn_take(struct turn *turns, long index) {
    while (!atomic_load_explicit(&turns[index].mine, memory_order_acquire))
        syscall(SYS_futex, &turns[index].mine, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    atomic_store_explicit(&turns[index].mine, 0, memory_order_relaxed);
}

// Give the turn to thread `index`. If that thread does not sleep yet, it finds the word changed.
static void turn_give(struct turn *turns, long index) {
    atomic_store_explicit(&turns[index].mine, 1, memory_order_release);
    syscall(SYS_futex, &turns[index].mine, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
