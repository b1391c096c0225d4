/* SPDX-License-Identifier: MIT */
// The partitioned ticket lock: D. Dice, "Brief Announcement: A Partitioned Ticket Lock", SPAA 2011.
// A ticket lock whose `now serving` is spread over several cache lines. Ticket t is announced in
// line t mod PARTITIONS, so a hand-over disturbs only a part of the waiters.
//
// Memory ordering: as in ticket.h.
#ifndef LISSOM_WORKLOADS_PARTITIONED_H
#define LISSOM_WORKLOADS_PARTITIONED_H

enum { PARTITIONS = 8 };

struct partitioned_lock {
    alignas(LINE) atomic_ulong next;
    alignas(LINE) unsigned long held; // the holder's ticket, protected by the lock
    struct {
        alignas(LINE) atomic_ulong serving;
    } part[PARTITIONS]; // all 0: serves ticket 0, and none of 1 to 7
};

static void partitioned_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

#endif

static void IN(partitioned_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct partitioned_lock *l = lock;
    unsigned long ticket = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    while (atomic_load_explicit(&l->part[ticket % PARTITIONS].serving, memory_order_acquire) !=
           ticket)
        SPIN_PAUSE();
    l->held = ticket;
}

static void IN(partitioned_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct partitioned_lock *l = lock;
    unsigned long next = l->held + 1;
    atomic_store_explicit(&l->part[next % PARTITIONS].serving, next, memory_order_release);
}
