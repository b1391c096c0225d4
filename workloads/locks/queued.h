/* SPDX-License-Identifier: MIT */
// A queued spinlock in one word, after the design of Linux's qspinlock (W. Long, P. Zijlstra, 2013
// to 2015): a locked bit, a pending bit, and the last of an MCS queue. The first waiter sets the
// pending bit and spins on the word. Later waiters spin on nodes of their own, and the head of the
// queue on the word. Linux has nodes per CPU; here each thread has one in the lock.
//
// Memory ordering: a thread that sets QUEUED_LOCKED has acquired the word after the last releasing
// fetch_and: by its read-modify-write, or by the load that saw the bit clear. The
// read-modify-writes in between (pending, tail) continue the release sequence. Storing the tail
// releases the node's initial values and acquires the predecessor's. `go` is released because it
// passes on the head's view of the lock.
#ifndef LISSOM_WORKLOADS_QUEUED_H
#define LISSOM_WORKLOADS_QUEUED_H

#define QUEUED_LOCKED UINT64_C(1)
#define QUEUED_PENDING (UINT64_C(1) << 8)
// the bits from this one on: 1 + index of the last thread in the queue, 0: none
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

    // `me` is the head. While there is a tail, no other thread can set QUEUED_LOCKED.
    while ((word = atomic_load_explicit(&l->word, memory_order_acquire)) &
           (QUEUED_LOCKED | QUEUED_PENDING))
        SPIN_PAUSE();
    if ((word & QUEUED_TAIL) == tail &&
        atomic_compare_exchange_strong_explicit(&l->word, &word, QUEUED_LOCKED,
                                                memory_order_acquire, memory_order_relaxed))
        return; // the queue is empty now
    // Another thread is behind `me`, or has set QUEUED_PENDING for a moment, saw the tail and will
    // be.
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
        // No thread waits yet: try to be the one with the pending bit.
        word = atomic_fetch_or_explicit(&l->word, QUEUED_PENDING, memory_order_acquire);
        if (!(word & ~QUEUED_LOCKED)) {
            while (atomic_load_explicit(&l->word, memory_order_acquire) & QUEUED_LOCKED)
                SPIN_PAUSE();
            atomic_fetch_add_explicit(&l->word, QUEUED_LOCKED - QUEUED_PENDING,
                                      memory_order_acquire);
            return;
        }
        if (!(word & QUEUED_PENDING)) // set here, but there is a queue already
            atomic_fetch_and_explicit(&l->word, ~QUEUED_PENDING, memory_order_relaxed);
    }
    IN(queued_enqueue)(l, self->index);
}

static void IN(queued_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct queued_lock *l = lock;
    atomic_fetch_and_explicit(&l->word, ~QUEUED_LOCKED, memory_order_release);
}
