/* SPDX-License-Identifier: MIT */
// The MCS lock: J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors", ACM Transactions on Computer Systems 9(1), 1991. An explicit
// queue; a waiter polls its own node.
//
// Memory ordering: the exchange releases the node's initial values to the successor. It acquires
// the critical section of the thread that left the queue empty (by the compare-and-swap with
// release in mcs_release). `next` is released because the predecessor then stores to the node. `go`
// passes the critical section on.
#ifndef LISSOM_WORKLOADS_MCS_H
#define LISSOM_WORKLOADS_MCS_H

struct mcs_node {
    _Atomic(struct mcs_node *) next;
    atomic_int go;
};
FITS(struct mcs_node);

struct mcs_lock {
    alignas(LINE) _Atomic(struct mcs_node *) tail;
};

static void mcs_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

#endif

static void IN(mcs_acquire)(void *lock, struct lock_node *self) {
    struct mcs_lock *l = lock;
    struct mcs_node *me = SPACE(struct mcs_node, self);
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->go, 0, memory_order_relaxed);
    struct mcs_node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
    if (!before)
        return;
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (!atomic_load_explicit(&me->go, memory_order_acquire))
        SPIN_PAUSE();
}

static void IN(mcs_release)(void *lock, struct lock_node *self) {
    struct mcs_lock *l = lock;
    struct mcs_node *me = SPACE(struct mcs_node, self);
    struct mcs_node *next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (!next) {
        struct mcs_node *last = me;
        if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL, memory_order_release,
                                                    memory_order_relaxed))
            return;
        // Another thread is between its exchange and its store to me->next.
        while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
            SPIN_PAUSE();
    }
    atomic_store_explicit(&next->go, 1, memory_order_release);
}
