/* SPDX-License-Identifier: MIT */
// The shuffle lock AQS, in its non-blocking form: S. Kashyap, I. Calciu, X. Cheng, C. Min, T. Kim,
// "Scalable and Practical Locking with Shuffling", SOSP 2019. It has a test-and-set word and an MCS
// queue. A thread may take a free word at once if no thread waits; of the queue only the head
// competes for it. Meanwhile one waiter, the shuffler, moves waiters of its own NUMA node up behind
// itself. The head is the first shuffler, and passes the role to the last waiter that it has moved.
// So one thread at a time moves nodes, and only nodes behind itself.
//
// Memory ordering: the read-modify-write that sets AQS_LOCKED acquires what its clearing releases.
// The predecessor's `next` releases a node's initial values. `ready` passes on the place of the
// head, `shuffler` the right to move nodes, each by release and acquire. So a head that leaves sees
// its own `next` as the last shuffler left it. A node that is moved is never the last of the queue:
// its `next` is set.
#ifndef LISSOM_WORKLOADS_AQS_H
#define LISSOM_WORKLOADS_AQS_H

#include "numa.h"

struct aqs_node {
    _Atomic(struct aqs_node *) next;
    atomic_int ready;    // it is the head
    atomic_int shuffler; // it is the shuffler
    atomic_int batch;    // 0: not moved; else number of waiters moved, with it
    long numa;
};
FITS(struct aqs_node);

enum {
    AQS_LOCKED = 1,
    AQS_QUEUED = 2,   // threads wait: new ones have to queue
    AQS_BATCH = 1024, // waiters moved before the next head starts anew, for fairness
};

struct aqs_lock {
    alignas(LINE) atomic_int word;
    alignas(LINE) _Atomic(struct aqs_node *) tail;
};

static void aqs_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

static int aqs_is_locked(struct aqs_lock *l) {
    return atomic_load_explicit(&l->word, memory_order_relaxed) & AQS_LOCKED;
}

// Return whether `me` can stop shuffling: the lock is free (`me` is the head), or `me` has become
// the head.
static int aqs_is_over(struct aqs_lock *l, struct aqs_node *me, int head) {
    return head ? !aqs_is_locked(l) : atomic_load_explicit(&me->ready, memory_order_relaxed);
}

// Move waiters of me's NUMA node up behind it, then pass the role on. Pre: me is the shuffler, or
// the head while there is none.
static void aqs_shuffle(struct aqs_lock *l, struct aqs_node *me, int head) {
    int batch = atomic_load_explicit(&me->batch, memory_order_relaxed);
    if (batch == 0)
        atomic_store_explicit(&me->batch, ++batch, memory_order_relaxed);
    atomic_store_explicit(&me->shuffler, 0, memory_order_relaxed);
    if (batch >= AQS_BATCH)
        return;
    // the last waiter moved; the one before the next candidate
    struct aqs_node *last = me, *before = me;
    while (batch < AQS_BATCH && !aqs_is_over(l, me, head)) {
        struct aqs_node *at = atomic_load_explicit(&before->next, memory_order_acquire);
        struct aqs_node *after = at ? atomic_load_explicit(&at->next, memory_order_acquire) : NULL;
        if (!after) // the last: another thread may be about to set its `next`
            break;
        if (at->numa != me->numa) {
            before = at;
            continue;
        }
        atomic_store_explicit(&at->batch, ++batch, memory_order_relaxed);
        if (before == last) {
            before = at; // it is in its place already
        } else {
            struct aqs_node *first = atomic_load_explicit(&last->next, memory_order_relaxed);
            atomic_store_explicit(&before->next, after, memory_order_relaxed);
            atomic_store_explicit(&at->next, first, memory_order_relaxed);
            atomic_store_explicit(&last->next, at, memory_order_relaxed);
        }
        last = at;
    }
    atomic_store_explicit(&last->shuffler, 1, memory_order_release);
}

#endif

static void IN(aqs_acquire)(void *lock, struct lock_node *self) {
    struct aqs_lock *l = lock;
    struct aqs_node *me = SPACE(struct aqs_node, self), *next;
    int word = 0;
    if (atomic_compare_exchange_strong_explicit(&l->word, &word, AQS_LOCKED, memory_order_acquire,
                                                memory_order_relaxed))
        return;
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->ready, 0, memory_order_relaxed);
    atomic_store_explicit(&me->shuffler, 0, memory_order_relaxed);
    atomic_store_explicit(&me->batch, 0, memory_order_relaxed);
    me->numa = numa_node(self);
    struct aqs_node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
    if (before) {
        atomic_store_explicit(&before->next, me, memory_order_release);
        while (!atomic_load_explicit(&me->ready, memory_order_acquire)) {
            if (atomic_load_explicit(&me->shuffler, memory_order_acquire))
                aqs_shuffle(l, me, 0);
            SPIN_PAUSE();
        }
    } else {
        atomic_fetch_or_explicit(&l->word, AQS_QUEUED, memory_order_relaxed);
    }

    // `me` is the head. Only threads that have not seen AQS_QUEUED compete with it.
    do {
        while (aqs_is_locked(l)) {
            if (atomic_load_explicit(&me->batch, memory_order_relaxed) == 0 ||
                atomic_load_explicit(&me->shuffler, memory_order_acquire))
                aqs_shuffle(l, me, 1);
            SPIN_PAUSE();
        }
    } while (atomic_fetch_or_explicit(&l->word, AQS_LOCKED, memory_order_acquire) & AQS_LOCKED);

    next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (!next) {
        struct aqs_node *last = me;
        if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL, memory_order_release,
                                                    memory_order_relaxed)) {
            // A new head may have set it just now; then others may overtake that head.
            atomic_fetch_and_explicit(&l->word, ~AQS_QUEUED, memory_order_relaxed);
            return;
        }
        while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
            SPIN_PAUSE();
    }
    atomic_store_explicit(&next->ready, 1, memory_order_release);
}

static void IN(aqs_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct aqs_lock *l = lock;
    atomic_fetch_and_explicit(&l->word, ~AQS_LOCKED, memory_order_release);
}
