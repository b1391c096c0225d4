/* SPDX-License-Identifier: MIT */
// The ticket lock: D. P. Reed, R. K. Kanodia, "Synchronization with Eventcounts and Sequencers",
// CACM 22(2), 1979; as a spinlock in Mellor-Crummey and Scott, 1991 (see mcs.h).
//
// Memory ordering: drawing a ticket orders nothing. A release stores `serving`, and the next holder
// acquires it, which orders their critical sections. Only the holder stores `serving`, so it may
// load it relaxed.
#ifndef LISSOM_WORKLOADS_TICKET_H
#define LISSOM_WORKLOADS_TICKET_H

struct ticket_lock {
    alignas(LINE) atomic_ulong next;
    alignas(LINE) atomic_ulong serving;
};

static void ticket_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

#endif

static void IN(ticket_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct ticket_lock *l = lock;
    unsigned long ticket = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    while (atomic_load_explicit(&l->serving, memory_order_acquire) != ticket)
        SPIN_PAUSE();
}

static void IN(ticket_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct ticket_lock *l = lock;
    unsigned long ticket = atomic_load_explicit(&l->serving, memory_order_relaxed);
    atomic_store_explicit(&l->serving, ticket + 1, memory_order_release);
}
