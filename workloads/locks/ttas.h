/* SPDX-License-Identifier: MIT */
// Test and test-and-set: L. Rudolph, Z. Segall, "Dynamic Decentralized Cache Schemes for MIMD
// Parallel Processors", ISCA 1984. Without backoff.
//
// Memory ordering: the exchange that takes the lock acquires what the store that frees it releases.
// The loads in between only decide when to retry, and are relaxed.
#ifndef LISSOM_WORKLOADS_TTAS_H
#define LISSOM_WORKLOADS_TTAS_H

struct ttas_lock {
    alignas(LINE) atomic_int taken;
};

static void ttas_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

#endif

static void IN(ttas_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct ttas_lock *l = lock;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire))
        while (atomic_load_explicit(&l->taken, memory_order_relaxed))
            SPIN_PAUSE();
}

static void IN(ttas_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct ttas_lock *l = lock;
    atomic_store_explicit(&l->taken, 0, memory_order_release);
}
