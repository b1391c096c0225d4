/* SPDX-License-Identifier: MIT */
// A Malthusian lock: D. Dice, "Malthusian Locks", EuroSys 2017, in its form MCSCR. An MCS lock
// whose holder, on release, takes surplus waiters out of the queue: it keeps one waiter behind the
// next holder, and puts the others on a passive list. They return, newest first, when the queue is
// empty. One release in MALTHUSIAN_FAIR passes the lock to the oldest, so that none starves.
// Simplified: at most one waiter is culled at a time, as in the paper, but passive ones spin like
// the others (the paper may park them).
//
// Memory ordering: as in mcs.h. The passive list and the random number belong to the holder: they
// are plain, and the lock passes them on. The holder may write a culled node's `next`: it is set,
// and is set only once.
#ifndef LISSOM_WORKLOADS_MALTHUSIAN_H
#define LISSOM_WORKLOADS_MALTHUSIAN_H

struct malthusian_node {
    _Atomic(struct malthusian_node *) next;
    atomic_int go;
    struct malthusian_node *older, *newer; // while passive
};
FITS(struct malthusian_node);

struct malthusian_lock {
    alignas(LINE) _Atomic(struct malthusian_node *) tail;
    alignas(LINE) struct malthusian_node *newest, *oldest;
    uint32_t random;
};

enum { MALTHUSIAN_FAIR = 1000 }; // as in the paper

static void malthusian_init(void *lock, long threads) {
    (void)threads;
    struct malthusian_lock *l = lock;
    l->random = 2463534242u;
}

static void malthusian_cull(struct malthusian_lock *l, struct malthusian_node *node) {
    node->newer = NULL;
    node->older = l->newest;
    if (l->newest)
        l->newest->newer = node;
    else
        l->oldest = node;
    l->newest = node;
}

static void malthusian_remove(struct malthusian_lock *l, struct malthusian_node *node) {
    if (node->newer)
        node->newer->older = node->older;
    else
        l->newest = node->older;
    if (node->older)
        node->older->newer = node->newer;
    else
        l->oldest = node->newer;
}

static int malthusian_fair(struct malthusian_lock *l) {
    l->random ^= l->random << 13;
    l->random ^= l->random >> 17;
    l->random ^= l->random << 5;
    return l->random % MALTHUSIAN_FAIR == 0;
}

#endif

static void IN(malthusian_acquire)(void *lock, struct lock_node *self) {
    struct malthusian_lock *l = lock;
    struct malthusian_node *me = SPACE(struct malthusian_node, self);
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->go, 0, memory_order_relaxed);
    struct malthusian_node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
    if (!before)
        return;
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (!atomic_load_explicit(&me->go, memory_order_acquire))
        SPIN_PAUSE();
}

static void IN(malthusian_release)(void *lock, struct lock_node *self) {
    struct malthusian_lock *l = lock;
    struct malthusian_node *me = SPACE(struct malthusian_node, self);
    struct malthusian_node *next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (!next) {
        // The queue is empty: a passive waiter, if there is one, becomes the whole queue.
        struct malthusian_node *passive = l->newest, *last = me;
        if (passive) {
            malthusian_remove(l, passive);
            atomic_store_explicit(&passive->next, NULL, memory_order_relaxed);
        }
        if (atomic_compare_exchange_strong_explicit(&l->tail, &last, passive, memory_order_release,
                                                    memory_order_relaxed)) {
            if (passive)
                atomic_store_explicit(&passive->go, 1, memory_order_release);
            return;
        }
        if (passive)
            malthusian_cull(l, passive); // a new waiter has arrived
        while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
            SPIN_PAUSE();
    }
    if (l->oldest && malthusian_fair(l)) {
        struct malthusian_node *oldest = l->oldest;
        malthusian_remove(l, oldest);
        atomic_store_explicit(&oldest->next, next, memory_order_relaxed);
        next = oldest;
    } else {
        struct malthusian_node *after = atomic_load_explicit(&next->next, memory_order_acquire);
        if (after) {
            malthusian_cull(l, next);
            next = after;
        }
    }
    atomic_store_explicit(&next->go, 1, memory_order_release);
}
