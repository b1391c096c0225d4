/* SPDX-License-Identifier: MIT */
// The array-based queue lock: T. E. Anderson, "The Performance of Spin Lock Alternatives for
// Shared-Memory Multiprocessors", IEEE Transactions on Parallel and Distributed Systems 1(1), 1990.
// Each thread has a slot, so each waiter polls a cache line of its own.
//
// Memory ordering: taking a ticket orders nothing. The slot is stored with release and loaded with
// acquire, which orders a critical section after the one before.
#ifndef LISSOM_WORKLOADS_ARRAY_H
#define LISSOM_WORKLOADS_ARRAY_H

struct array_slot {
    alignas(LINE) atomic_int go;
};

struct array_lock {
    alignas(LINE) atomic_ulong next; // 64 bits: never wraps, so any number of slots works
    unsigned long slots;
    struct array_slot slot[];
};

struct array_self {
    unsigned long slot;
};
FITS(struct array_self);

static void array_init(void *lock, long threads) {
    struct array_lock *l = lock;
    l->slots = (unsigned long)threads;
    atomic_init(&l->slot[0].go, 1);
}

#endif

static void IN(array_acquire)(void *lock, struct lock_node *self) {
    struct array_lock *l = lock;
    unsigned long slot = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed) % l->slots;
    while (!atomic_load_explicit(&l->slot[slot].go, memory_order_acquire))
        SPIN_PAUSE();
    // Clear it before the next slot is released, so before another thread can get this one.
    atomic_store_explicit(&l->slot[slot].go, 0, memory_order_relaxed);
    SPACE(struct array_self, self)->slot = slot;
}

static void IN(array_release)(void *lock, struct lock_node *self) {
    struct array_lock *l = lock;
    unsigned long slot = SPACE(struct array_self, self)->slot;
    atomic_store_explicit(&l->slot[(slot + 1) % l->slots].go, 1, memory_order_release);
}
