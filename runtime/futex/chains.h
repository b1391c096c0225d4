/* SPDX-License-Identifier: MIT
 *
 * Chains: the part of a wait queue for threads that are woken all at once, with one chain for each
 * slot. docs/design/virtual-blocking.md, "Chains"; docs/model/chains.pml.
 */
#ifndef LISSOM_FUTEX_CHAINS_H
#define LISSOM_FUTEX_CHAINS_H

#include "futex/queue.h"

enum {
    CHAIN_SLOTS = 64, /* threads of slots with higher numbers wait in the bucket's queue */
    CHAINS = 64,      /* per slot; 64 buckets share each */
    BULK = 4,         /* bulk wakes after which waiters join chains (struct bucket) */
};

/* The threads of one slot that wait at one address. */
struct chain {
    struct lock lock; /* protects all fields; taken after a bucket's lock */
    uint32_t count;
    uint32_t epoch; /* incremented when all threads are removed at once */
    uintptr_t address;
    struct thread *head, *tail; /* linked by next and wait_prev */
} __attribute__((aligned(64)));

void chains_init(void);
void chains_after_fork(void);

/* Let t, of slot s, wait at `address` in b. Returns JOINED if t is in a chain now, USE_QUEUE if t
 * has to wait in the bucket's queue, and otherwise the result of the call. */
long chain_join(struct thread *t, const struct slot *s, struct bucket *b, uintptr_t address,
                uint32_t value);

/* Remove t from c. Returns false if t is not in c. */
bool chain_leave(struct chain *c, struct thread *t);

/* Wake all threads that wait at `address` in b's chains: each on its slot, those of slot `own`
 * last, or all on slot `own` (gather.h). Returns the number woken. */
uint32_t chains_wake(struct slot *own, struct bucket *b, uintptr_t address);

/* Move the threads of b's chains to its queue, in order of arrival, behind those that joined the
 * queue. Pre: b->lock. */
void chains_fold(struct bucket *b);

#endif
