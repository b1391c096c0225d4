/* SPDX-License-Identifier: MIT
 *
 * Buckets: hashed wait queues, first come, first served.
 */
#ifndef LISSOM_FUTEX_QUEUE_H
#define LISSOM_FUTEX_QUEUE_H

#include "sched/thread.h"

struct bucket {
    struct lock lock;
    /* threads that wait in the kernel on an address of this bucket (seq_cst) */
    uint32_t kernel_waiters;
    struct thread *head, *tail; /* under lock; wakers read head without */
    /* recent spins here that were useless; a guess, updated without lock */
    uint16_t spin_long_waits;
    uint16_t spin_skipped;
    /* bulk wakes that found several threads in the queue, since the last wake of some only, up to
     * BULK (chains.h); under lock, a guess without */
    uint8_t bulk;
    uint64_t chains; /* bit i: slot i has a chain of this bucket that is not empty (seq_cst) */
} __attribute__((aligned(64)));

enum { BUCKETS = 4096 };
extern struct bucket futex_buckets[BUCKETS]; /* whole pages */

static inline struct bucket *bucket_of(uintptr_t address)
{
    return &futex_buckets[((address >> 2) * 0x9e3779b97f4a7c15ull) >> 52];
}

/* Return whether a waker that has changed a word of b finds no thread in the queue, chains aside. A
 * waiter compares the word under the lock, and is in the queue when it drops the lock. So if it
 * missed the change, the waker sees the lock or, after that, the queue. Pre: a full fence since the
 * change. */
static inline bool queue_list_is_empty(const struct bucket *b)
{
    return !__atomic_load_n(&b->lock.word, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&b->head, __ATOMIC_RELAXED);
}

/* Return whether a waker that has changed a word of b finds no thread in queue or chains. A waiter
 * in a chain sets its bit before it compares the word. Reads the chains first: chains_fold moves
 * their threads to the queue, and then clears the bits. Pre: a full fence since the change. */
static inline bool queue_is_empty(const struct bucket *b)
{
    return !__atomic_load_n(&b->chains, __ATOMIC_ACQUIRE) && queue_list_is_empty(b);
}

enum {
    JOINED = 2,    /* it may wait, or is in a queue */
    USE_QUEUE = 3, /* result of chain_join */
};

/* Return JOINED if t may wait at `address`, and otherwise the result of the call. Pre: the lock
 * under which t joins. */
long futex_compare(uintptr_t address, uint32_t value);

/* Append t. Pre: b->lock. */
static inline void queue_push(struct bucket *b, struct thread *t)
{
    t->wait_next = NULL;
    t->wait_prev = b->tail;
    if (b->tail)
        b->tail->wait_next = t;
    else
        __atomic_store_n(&b->head, t, __ATOMIC_RELAXED);
    b->tail = t;
    __atomic_store_n(&t->bucket, b, __ATOMIC_RELAXED);
}

/* Insert t before `at`; NULL: at the tail. Pre: b->lock. */
static inline void queue_insert(struct bucket *b, struct thread *t, struct thread *at)
{
    if (!at) {
        queue_push(b, t);
        return;
    }
    t->wait_next = at;
    t->wait_prev = at->wait_prev;
    if (at->wait_prev)
        at->wait_prev->wait_next = t;
    else
        __atomic_store_n(&b->head, t, __ATOMIC_RELAXED);
    at->wait_prev = t;
    __atomic_store_n(&t->bucket, b, __ATOMIC_RELAXED);
}

/* Remove t. Pre: b->lock. */
static inline void queue_remove(struct bucket *b, struct thread *t)
{
    if (t->wait_prev)
        t->wait_prev->wait_next = t->wait_next;
    else
        __atomic_store_n(&b->head, t->wait_next, __ATOMIC_RELAXED);
    if (t->wait_next)
        t->wait_next->wait_prev = t->wait_prev;
    else
        b->tail = t->wait_prev;
    __atomic_store_n(&t->bucket, NULL, __ATOMIC_RELAXED);
}

/* Spin before a wait. Returns true if *word no longer equals `value`.
 *
 * A lock is often released within microseconds by a thread that runs on another slot. If its waiter
 * unmounted at once, every ready thread of this slot would run into the same lock. Most waits are
 * longer: at a barrier nearly all spins are useless. So where they are, only a wait now and then
 * begins with one. */
bool futex_spin(struct thread *t, struct bucket *b, const uint32_t *word, uint32_t value);

static inline void lock_two(struct bucket *a, struct bucket *b)
{
    if (a == b) {
        lock_take(&a->lock);
        return;
    }
    lock_take(a < b ? &a->lock : &b->lock);
    lock_take(a < b ? &b->lock : &a->lock);
}

static inline void unlock_two(struct bucket *a, struct bucket *b)
{
    lock_drop(&a->lock);
    if (a != b)
        lock_drop(&b->lock);
}

#endif
