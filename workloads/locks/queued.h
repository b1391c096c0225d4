/* SPDX-License-Identifier: MIT */
// A queued spinlock in one word, after the design of Linux's qspinlock (W. Long, P. Zijlstra, 2013
// to 2015): locked and pending bits, and the last of an MCS queue. The first waiter spins on the
// word itself behind the pending bit, later ones on nodes of their own, and the head of the queue
// again on the word. Linux has nodes per CPU; here each thread has one in the lock.
//
// Orders: whoever sets `locked` has acquired the word after the releasing fetch_and of the one
// before, either by the read-modify-write itself or by the load that saw `locked` go; the
// read-modify-writes between (pending, tail) continue its release sequence. Putting ourselves at
// the tail releases our node's initial values and acquires the predecessor's. A node's `go` is
// released because the head's view of the lock goes with it.
#ifndef LISSOM_WORKLOADS_QUEUED_H
#define LISSOM_WORKLOADS_QUEUED_H

#define QUEUED_LOCKED UINT64_C(1)
#define QUEUED_PENDING (UINT64_C(1) << 8)
// above it: 1 + the index of the last thread in the queue, 0 if there is none
#define QUEUED_TAIL_SHIFT 32
#define QUEUED_TAIL (~UINT64_C(0) << QUEUED_TAIL_SHIFT)

struct queued_node {
    alignas(LINE) _Atomic(struct queued_node *) next;
    atomic_int go;
};

struct queued_lock {
    alignas(LINE) _Atomic uint64_t word;
    struct queued_node node[];
};

static void queued_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

#endif

static void IN(queued_enqueue)(struct queued_lock *l, long index) {
    uint64_t tail = ((uint64_t)index + 1) << QUEUED_TAIL_SHIFT;
    struct queued_node *me = &l->node[index], *next;
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->go, 0, memory_order_relaxed);

    uint64_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&l->word, &word, (word & ~QUEUED_TAIL) | tail,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    if (word & QUEUED_TAIL) {
        struct queued_node *before = &l->node[(word >> QUEUED_TAIL_SHIFT) - 1];
        atomic_store_explicit(&before->next, me, memory_order_release);
        while (!atomic_load_explicit(&me->go, memory_order_acquire))
            SPIN_PAUSE();
    }

    // We are the head. As long as there is a tail, nobody else can set `locked`.
    while ((word = atomic_load_explicit(&l->word, memory_order_acquire)) &
           (QUEUED_LOCKED | QUEUED_PENDING))
        SPIN_PAUSE();
    if ((word & QUEUED_TAIL) == tail &&
        atomic_compare_exchange_strong_explicit(&l->word, &word, QUEUED_LOCKED,
                                                memory_order_acquire, memory_order_relaxed))
        return; // and the queue is empty
    // Somebody is behind us, or has set `pending` for a moment, has seen the tail, and will be.
    atomic_fetch_or_explicit(&l->word, QUEUED_LOCKED, memory_order_acquire);
    while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
        SPIN_PAUSE();
    atomic_store_explicit(&next->go, 1, memory_order_release);
}

static void IN(queued_acquire)(void *lock, struct lock_node *self) {
    struct queued_lock *l = lock;
    uint64_t word = 0;
    if (atomic_compare_exchange_strong_explicit(&l->word, &word, QUEUED_LOCKED,
                                                memory_order_acquire, memory_order_relaxed))
        return;
    if (!(word & ~QUEUED_LOCKED)) {
        // Nobody waits yet: we may be the one who does so behind `pending`.
        word = atomic_fetch_or_explicit(&l->word, QUEUED_PENDING, memory_order_acquire);
        if (!(word & ~QUEUED_LOCKED)) {
            while (atomic_load_explicit(&l->word, memory_order_acquire) & QUEUED_LOCKED)
                SPIN_PAUSE();
            atomic_fetch_add_explicit(&l->word, QUEUED_LOCKED - QUEUED_PENDING,
                                      memory_order_acquire);
            return;
        }
        if (!(word & QUEUED_PENDING)) // it is ours, and there is a queue already
            atomic_fetch_and_explicit(&l->word, ~QUEUED_PENDING, memory_order_relaxed);
    }
    IN(queued_enqueue)(l, self->index);
}

static void IN(queued_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct queued_lock *l = lock;
    atomic_fetch_and_explicit(&l->word, ~QUEUED_LOCKED, memory_order_release);
}
