/* SPDX-License-Identifier: MIT */
// The CLH lock: T. S. Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap",
// University of Washington TR 93-02-02, 1993; P. Magnusson, A. Landin, E. Hagersten, "Queue Locks
// on Cache Coherent Multiprocessors", IPPS 1994. The queue is implicit: a waiter polls its
// predecessor's node, and keeps that node when it leaves.
//
// Memory ordering: the exchange releases the node's `taken`, so the successor reads it after it is
// set, and acquires the predecessor's. The store that frees a node releases the critical section to
// the load of the waiter.
#ifndef LISSOM_WORKLOADS_CLH_H
#define LISSOM_WORKLOADS_CLH_H

struct clh_node {
    alignas(LINE) atomic_int taken;
};

struct clh_lock {
    alignas(LINE) _Atomic(struct clh_node *) tail;
    struct clh_node first; // free: the predecessor of the first thread
};

struct clh_self {
    struct clh_node *mine; // NULL: `own`, which no other thread has yet
    struct clh_node *before;
    struct clh_node own;
};
FITS(struct clh_self);

static void clh_init(void *lock, long threads) {
    (void)threads;
    struct clh_lock *l = lock;
    atomic_init(&l->tail, &l->first);
}

#endif

static void IN(clh_acquire)(void *lock, struct lock_node *self) {
    struct clh_lock *l = lock;
    struct clh_self *s = SPACE(struct clh_self, self);
    if (!s->mine)
        s->mine = &s->own;
    atomic_store_explicit(&s->mine->taken, 1, memory_order_relaxed);
    s->before = atomic_exchange_explicit(&l->tail, s->mine, memory_order_acq_rel);
    while (atomic_load_explicit(&s->before->taken, memory_order_acquire))
        SPIN_PAUSE();
}

static void IN(clh_release)(void *lock, struct lock_node *self) {
    (void)lock;
    struct clh_self *s = SPACE(struct clh_self, self);
    struct clh_node *mine = s->mine;
    s->mine = s->before; // no thread reads it any more
    atomic_store_explicit(&mine->taken, 0, memory_order_release);
}
