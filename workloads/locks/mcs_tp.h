/* SPDX-License-Identifier: MIT */
// MCS-TP: B. He, W. N. Scherer III, M. L. Scott, "Preemption Adaptivity in Time-Published
// Queue-Based Spin Locks", HiPC 2005, section 2.2. An MCS queue whose waiters publish the time
// while they spin. A release passes the lock to the first waiter that has published it lately. It
// removes waiters before that one, which must have been preempted: they join the queue again when
// they run. A waiter that finds the lock held for longer than a critical section yields, since the
// holder must have been preempted.
//
// The paper's waiters may give up; those of a mutex do not. So only three states of a node are
// needed.
//
// Memory ordering: as in mcs.h; `status` passes the critical section on. A release reads a node's
// `next` before it sets the node's `status` to MCS_TP_FAILED: the node is then its thread's again.
#ifndef LISSOM_WORKLOADS_MCS_TP_H
#define LISSOM_WORKLOADS_MCS_TP_H

#include "preload.h"

enum { MCS_TP_WAITING, MCS_TP_AVAILABLE, MCS_TP_FAILED };

// MCS_TP_STALE: nanoseconds after which a waiter that has not published the time counts as
// preempted. MCS_TP_SECTION: nanoseconds after which the holder does. MCS_TP_SCAN: maximum number
// of waiters passed over.
enum { MCS_TP_STALE = 20000, MCS_TP_SECTION = 50000, MCS_TP_SCAN = 1000 };

struct mcs_tp_node {
    alignas(128) _Atomic(struct mcs_tp_node *) next;
    atomic_int status;
    _Atomic int64_t time;
    struct mcs_tp_node *free; // next in a thread's free list
};

static __thread struct mcs_tp_node *mcs_tp_free;

// Take a node off the thread's free list. A thread may hold several locks, with a node in each.
// Nodes are never unmapped: another thread may still read one.
static struct mcs_tp_node *mcs_tp_node(void) {
    enum { EACH = 16 };
    if (!mcs_tp_free) {
        // Not malloc, which may lock a mutex.
        struct mcs_tp_node *nodes = mmap(NULL, EACH * sizeof *nodes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (nodes == MAP_FAILED)
            _exit(127);
        for (int i = 0; i < EACH; i++) {
            nodes[i].free = mcs_tp_free;
            mcs_tp_free = &nodes[i];
        }
    }
    struct mcs_tp_node *node = mcs_tp_free;
    mcs_tp_free = node->free;
    return node;
}

static void mcs_tp_give_back(struct mcs_tp_node *node) {
    node->free = mcs_tp_free;
    mcs_tp_free = node;
}

// Store the time at which the lock was taken, in units of 1,024 ns. MCS-TP does not need `word`
// otherwise.
static void mcs_tp_begin(struct preload_lock *l, struct mcs_tp_node *me) {
    l->owner = me;
    atomic_store_explicit(&l->word, (uint32_t)(preload_now() >> 10), memory_order_relaxed);
}

static int mcs_tp_held_for_long(struct preload_lock *l) {
    uint32_t since =
        (uint32_t)(preload_now() >> 10) - atomic_load_explicit(&l->word, memory_order_relaxed);
    return since > MCS_TP_SECTION >> 10 && since < UINT32_MAX / 2;
}

static int mcs_tp_trylock(struct preload_lock *l) {
    struct mcs_tp_node *me = mcs_tp_node();
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->status, MCS_TP_WAITING, memory_order_relaxed);
    void *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&l->tail, &none, me, memory_order_acq_rel,
                                                memory_order_relaxed)) {
        mcs_tp_begin(l, me);
        return 1;
    }
    mcs_tp_give_back(me);
    return 0;
}

static void mcs_tp_lock(struct preload_lock *l) {
    struct mcs_tp_node *me = mcs_tp_node();
    for (;;) {
        atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
        atomic_store_explicit(&me->status, MCS_TP_WAITING, memory_order_relaxed);
        atomic_store_explicit(&me->time, preload_now(), memory_order_relaxed);
        struct mcs_tp_node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
        if (!before)
            break;
        atomic_store_explicit(&before->next, me, memory_order_release);
        int status;
        while ((status = atomic_load_explicit(&me->status, memory_order_acquire)) ==
               MCS_TP_WAITING) {
            atomic_store_explicit(&me->time, preload_now(), memory_order_relaxed);
            if (mcs_tp_held_for_long(l))
                sched_yield();
            else
                preload_pause();
        }
        if (status == MCS_TP_AVAILABLE)
            break;
    }
    mcs_tp_begin(l, me);
}

static void mcs_tp_unlock(struct preload_lock *l) {
    struct mcs_tp_node *me = l->owner, *node = me;
    int64_t lately = preload_now() - MCS_TP_STALE;
    for (int passed = 0;; passed++) {
        struct mcs_tp_node *next = atomic_load_explicit(&node->next, memory_order_acquire);
        if (!next) {
            void *last = node;
            if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL, memory_order_acq_rel,
                                                        memory_order_relaxed)) {
                if (node != me)
                    atomic_store_explicit(&node->status, MCS_TP_FAILED, memory_order_release);
                break;
            }
            // Another thread is between its exchange and its store to `next`, perhaps without a
            // CPU.
            for (int spins = 0; !(next = atomic_load_explicit(&node->next, memory_order_acquire));
                 spins++) {
                if (spins > 1000)
                    sched_yield();
                else
                    preload_pause();
            }
        }
        if (node != me)
            atomic_store_explicit(&node->status, MCS_TP_FAILED, memory_order_release);
        node = next;
        if (passed >= MCS_TP_SCAN ||
            atomic_load_explicit(&node->time, memory_order_relaxed) > lately) {
            atomic_store_explicit(&node->status, MCS_TP_AVAILABLE, memory_order_release);
            break;
        }
    }
    mcs_tp_give_back(me);
}

#endif
