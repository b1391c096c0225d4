/* SPDX-License-Identifier: MIT
 *
 * Buckets: hashed wait queues, first come first served.
 */
#ifndef LISSOM_FUTEX_QUEUE_H
#define LISSOM_FUTEX_QUEUE_H

#include "sched/thread.h"

struct bucket {
    struct lock lock;
    uint32_t waiters; /* queued threads; under lock, read without by wakers (seq_cst) */
    /* threads that wait in the kernel on an address of this bucket (seq_cst) */
    uint32_t kernel_waiters;
    struct thread *head, *tail;
    /* rounds of spinning here that were for nothing lately; a guess, updated without lock */
    uint16_t spin_debt;
    uint16_t spin_skipped;
} __attribute__((aligned(64)));

enum { BUCKETS = 4096 };
extern struct bucket futex_buckets[BUCKETS]; /* whole pages */

static inline struct bucket *bucket_of(uintptr_t address)
{
    return &futex_buckets[((address >> 2) * 0x9e3779b97f4a7c15ull) >> 52];
}

/* Pre for all: b->lock. */
static inline void queue_push(struct bucket *b, struct thread *t)
{
    t->wait_next = NULL;
    t->wait_prev = b->tail;
    if (b->tail)
        b->tail->wait_next = t;
    else
        b->head = t;
    b->tail = t;
    __atomic_store_n(&t->bucket, b, __ATOMIC_RELAXED);
}

static inline void queue_remove(struct bucket *b, struct thread *t)
{
    if (t->wait_prev)
        t->wait_prev->wait_next = t->wait_next;
    else
        b->head = t->wait_next;
    if (t->wait_next)
        t->wait_next->wait_prev = t->wait_prev;
    else
        b->tail = t->wait_prev;
    __atomic_store_n(&t->bucket, NULL, __ATOMIC_RELAXED);
}

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
