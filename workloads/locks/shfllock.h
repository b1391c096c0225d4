/* SPDX-License-Identifier: MIT */
// SHFLLOCK, the blocking mutex: S. Kashyap, I. Calciu, X. Cheng, C. Min, T. Kim, "Scalable and
// Practical Locking with Shuffling", SOSP 2019, sections 4.1 and 4.2. A word says whether the lock
// is taken. Of the queue of waiters only the head reads it; a release only stores the word. One
// waiter, the shuffler, moves waiters of its own NUMA node to the front and wakes the one behind
// it, off the critical path. The others sleep after a short spin. New threads may take a free word
// before the queue (stealing), unless the head has waited for long and forbids it.
//
// Simplified: the shuffler wakes at most the next waiter. The paper's wakes all that it moves,
// which is a storm with more threads than CPUs. A head yields where the kernel's would be
// preempted.
//
// The queue: only the shuffler changes a `next` that is set, from its own node on. A waiter reads
// its `next` only after it has become the head and taken the lock. By then all nodes before it have
// left, including the shuffler. The role is the flag `shuffler`, set in one node at most. A node
// without a `next` may be about to get one, so it is not moved.
//
// Memory ordering: the word acquires and releases the critical section. `status` releases the
// node's place in the queue, and the flags that the last shuffler has stored there.
#ifndef LISSOM_WORKLOADS_SHFLLOCK_H
#define LISSOM_WORKLOADS_SHFLLOCK_H

#include "preload.h"

enum { SHFL_FREE = 0, SHFL_TAKEN = 1, SHFL_NO_STEALING = 256 };
enum { SHFL_WAITING, SHFL_PARKED, SHFL_HEAD };
enum { SHFL_SPINS = 1000, SHFL_HEAD_SPINS = 2000, SHFL_BATCH = 1024 };

// A node is on its thread's stack, since it leaves the queue before the critical section.
struct shfl_node {
    alignas(128) _Atomic(struct shfl_node *) next;
    _Atomic uint32_t status;
    unsigned numa;
    int shuffler, batch;
};

static unsigned shfl_numa(void) {
    unsigned cpu, node = 0;
    syscall(SYS_getcpu, &cpu, &node, NULL);
    return node;
}

// Wake the node's thread if it sleeps. Pre: `node` is not the head.
static void shfl_wake(struct shfl_node *node) {
    uint32_t parked = SHFL_PARKED;
    if (atomic_compare_exchange_strong(&node->status, &parked, SHFL_WAITING))
        preload_wake(&node->status);
}

// Wake the next waiter, and move waiters of me's NUMA node up behind it. Pass the role to the last
// waiter moved, or keep it. Pre: me is the shuffler.
static void shfl_shuffle(struct preload_lock *l, struct shfl_node *me, int is_head) {
    int batch = me->batch ? me->batch : 1;
    me->batch = batch;
    struct shfl_node *last = me, *before = me;
    struct shfl_node *first = atomic_load_explicit(&me->next, memory_order_acquire);
    if (first)
        shfl_wake(first);
    while (batch < SHFL_BATCH) {
        struct shfl_node *node = atomic_load_explicit(&before->next, memory_order_acquire);
        struct shfl_node *after =
            node ? atomic_load_explicit(&node->next, memory_order_acquire) : NULL;
        if (!after)
            break;
        if (node->numa != me->numa) {
            before = node;
        } else {
            node->batch = ++batch;
            if (before != last) {
                atomic_store_explicit(&before->next, after, memory_order_relaxed);
                atomic_store_explicit(&node->next,
                                      atomic_load_explicit(&last->next, memory_order_relaxed),
                                      memory_order_relaxed);
                atomic_store_explicit(&last->next, node, memory_order_release);
            } else {
                before = node;
            }
            last = node;
        }
        // The lock is free, or `me` has become the head.
        if (is_head ? atomic_load_explicit(&l->word, memory_order_relaxed) % SHFL_NO_STEALING ==
                          SHFL_FREE
                    : atomic_load_explicit(&me->status, memory_order_relaxed) == SHFL_HEAD)
            break;
    }
    if (last != me) {
        me->shuffler = 0;
        __atomic_store_n(&last->shuffler, 1, __ATOMIC_RELEASE);
    }
}

static int shfl_trylock(struct preload_lock *l) {
    uint32_t is_free = SHFL_FREE;
    return atomic_load_explicit(&l->word, memory_order_relaxed) == SHFL_FREE &&
           atomic_compare_exchange_strong_explicit(&l->word, &is_free, SHFL_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

// Wait until `me` is the head of the queue.
static void shfl_wait(struct preload_lock *l, struct shfl_node *me) {
    for (int spins = 0;;) {
        uint32_t status = atomic_load_explicit(&me->status, memory_order_acquire);
        if (status == SHFL_HEAD)
            return;
        if (__atomic_load_n(&me->shuffler, __ATOMIC_ACQUIRE) && spins % 64 == 0)
            shfl_shuffle(l, me, 0);
        if (++spins < SHFL_SPINS) {
            preload_pause();
            continue;
        }
        spins = 0;
        // A thread that wakes `me`, or makes it the head, changes the status first: then this does
        // not sleep.
        if (status == SHFL_WAITING &&
            !atomic_compare_exchange_strong(&me->status, &status, SHFL_PARKED) &&
            status == SHFL_HEAD)
            return;
        while (atomic_load_explicit(&me->status, memory_order_acquire) == SHFL_PARKED)
            preload_sleep(&me->status, SHFL_PARKED);
    }
}

static void shfl_lock(struct preload_lock *l) {
    if (shfl_trylock(l))
        return;
    struct shfl_node me = {.numa = shfl_numa()};
    struct shfl_node *before = atomic_exchange_explicit(&l->tail, &me, memory_order_acq_rel);
    if (before) {
        atomic_store_explicit(&before->next, &me, memory_order_release);
        shfl_wait(l, &me);
    }
    // `me` is the head. It takes the role if no thread has it: then the last shuffler had it when
    // it took the lock. Waiters that a shuffler has moved are between it and the new shuffler; none
    // has batch 0.
    if (me.batch == 0)
        me.shuffler = 1;
    for (int spins = 0;;) {
        uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
        if (word % SHFL_NO_STEALING == SHFL_FREE) {
            // This also allows stealing again.
            if (atomic_compare_exchange_weak_explicit(&l->word, &word, SHFL_TAKEN,
                                                      memory_order_acquire, memory_order_relaxed))
                break;
            continue;
        }
        if (spins % 64 == 0 && __atomic_load_n(&me.shuffler, __ATOMIC_ACQUIRE))
            shfl_shuffle(l, &me, 1);
        if (++spins >= SHFL_HEAD_SPINS) {
            spins = 0;
            atomic_fetch_or_explicit(&l->word, SHFL_NO_STEALING, memory_order_relaxed);
            sched_yield();
        }
        preload_pause();
    }
    // Leave the queue: the next waiter is its head.
    struct shfl_node *next = atomic_load_explicit(&me.next, memory_order_acquire);
    if (!next) {
        void *last = &me;
        if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL, memory_order_acq_rel,
                                                    memory_order_relaxed))
            return;
        for (int spins = 0; !(next = atomic_load_explicit(&me.next, memory_order_acquire));
             spins++) {
            if (spins > 1000)
                sched_yield();
            else
                preload_pause();
        }
    }
    if (atomic_exchange(&next->status, SHFL_HEAD) == SHFL_PARKED)
        preload_wake(&next->status);
}

static void shfl_unlock(struct preload_lock *l) {
    atomic_fetch_and_explicit(&l->word, ~(uint32_t)SHFL_TAKEN, memory_order_release);
}

#endif
