/* SPDX-License-Identifier: MIT */
// The compact NUMA-aware lock: D. Dice, A. Kogan, "Compact NUMA-Aware Locks", EuroSys 2019. An MCS
// queue whose holder, on release, searches for the first waiter on its own NUMA node. It moves the
// waiters before that one to a secondary queue. The word that passes the lock on also has the head
// of that queue. The secondary queue returns to the main one when no waiter of the node is left,
// and at random, for fairness. On a machine with one NUMA node no waiter is moved, unless `numa` of
// struct lock_node says otherwise.
//
// Memory ordering: as in mcs.h. `numa` is written before `next` is released, so a thread that loads
// `next` with acquire sees it. Only the holder accesses the secondary queue, including `last`; `go`
// passes it on.
#ifndef LISSOM_WORKLOADS_CNA_H
#define LISSOM_WORKLOADS_CNA_H

#include "numa.h"

struct cna_node {
    _Atomic(struct cna_node *) next;
    // 0: wait; CNA_GO: run; else run, and this is the head of the secondary queue
    atomic_uintptr_t go;
    long numa;             // -1: unknown yet
    struct cna_node *last; // last node of the secondary queue; valid in its head
};
FITS(struct cna_node);

struct cna_lock {
    alignas(LINE) _Atomic(struct cna_node *) tail;
    alignas(LINE) uint32_t random; // accessed by the holder only
};

// one release in CNA_LOCAL + 1 does not prefer its own node
enum { CNA_GO = 1, CNA_LOCAL = 0xffff };

static void cna_init(void *lock, long threads) {
    (void)threads;
    struct cna_lock *l = lock;
    l->random = 2463534242u;
}

static int cna_keep_local(struct cna_lock *l) {
    l->random ^= l->random << 13;
    l->random ^= l->random >> 17;
    l->random ^= l->random << 5;
    return (l->random & CNA_LOCAL) != 0;
}

static struct cna_node *cna_secondary(struct cna_node *me) {
    uintptr_t go = atomic_load_explicit(&me->go, memory_order_relaxed); // acquired by cna_acquire
    return go > CNA_GO ? (struct cna_node *)go : NULL;
}

// Return the first waiter on me's NUMA node, and move the waiters before it to the secondary queue.
// Return NULL and move nothing if there is none. me->numa is where the holder called cna_acquire,
// even if it has migrated since.
static struct cna_node *cna_successor(struct cna_node *me, struct cna_node *next) {
    if (next->numa == me->numa)
        return next;
    struct cna_node *last = next, *at;
    while ((at = atomic_load_explicit(&last->next, memory_order_acquire)) && at->numa != me->numa)
        last = at;
    if (!at)
        return NULL;
    struct cna_node *head = cna_secondary(me);
    if (head) {
        atomic_store_explicit(&head->last->next, next, memory_order_relaxed);
    } else {
        head = next;
        atomic_store_explicit(&me->go, (uintptr_t)head, memory_order_relaxed);
    }
    // it was set, so no other thread sets it again
    atomic_store_explicit(&last->next, NULL, memory_order_relaxed);
    head->last = last;
    return at;
}

#endif

static void IN(cna_acquire)(void *lock, struct lock_node *self) {
    struct cna_lock *l = lock;
    struct cna_node *me = SPACE(struct cna_node, self);
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->go, 0, memory_order_relaxed);
    me->numa = -1; // read only where needed, as in the paper
    struct cna_node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
    if (!before) {
        atomic_store_explicit(&me->go, CNA_GO, memory_order_relaxed);
        return;
    }
    me->numa = numa_node(self);
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (!atomic_load_explicit(&me->go, memory_order_acquire))
        SPIN_PAUSE();
}

static void IN(cna_release)(void *lock, struct lock_node *self) {
    struct cna_lock *l = lock;
    struct cna_node *me = SPACE(struct cna_node, self);
    struct cna_node *next = atomic_load_explicit(&me->next, memory_order_acquire),
                    *head = cna_secondary(me);
    if (!next) {
        // The main queue is empty: the secondary queue, if there is one, becomes the main one.
        struct cna_node *last = me;
        if (atomic_compare_exchange_strong_explicit(&l->tail, &last, head ? head->last : NULL,
                                                    memory_order_release, memory_order_relaxed)) {
            if (head)
                atomic_store_explicit(&head->go, CNA_GO, memory_order_release);
            return;
        }
        while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
            SPIN_PAUSE();
    }
    if (me->numa < 0)
        me->numa = numa_node(self);
    struct cna_node *local = cna_keep_local(l) ? cna_successor(me, next) : NULL;
    if (local) {
        // with the waiters moved just now
        uintptr_t go = atomic_load_explicit(&me->go, memory_order_relaxed);
        atomic_store_explicit(&local->go, go, memory_order_release);
    } else if (head) {
        // Put the secondary queue in front of the main one.
        atomic_store_explicit(&head->last->next, next, memory_order_relaxed);
        atomic_store_explicit(&head->go, CNA_GO, memory_order_release);
    } else {
        atomic_store_explicit(&next->go, CNA_GO, memory_order_release);
    }
}
