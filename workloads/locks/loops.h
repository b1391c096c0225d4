/* SPDX-License-Identifier: MIT */
// Test-and-set locks with different wait loops, to test their detection. `backoff` waits longer
// after each failure (T. E. Anderson, see array.h), `call` calls a function in each iteration, and
// `counted` yields after a number of iterations, as many hand-made locks do.
//
// Memory ordering: as in ttas.h.
#ifndef LISSOM_WORKLOADS_LOOPS_H
#define LISSOM_WORKLOADS_LOOPS_H

#include <sched.h>

struct backoff_lock {
    alignas(LINE) atomic_int taken;
};

struct call_lock {
    alignas(LINE) atomic_int taken;
};

struct counted_lock {
    alignas(LINE) atomic_int taken;
};

// COUNTED_TURNS iterations take milliseconds, so that they are seen waiting
enum { BACKOFF_MOST = 1 << 10, COUNTED_TURNS = 1 << 24 };

static void backoff_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

static void call_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

static void counted_init(void *lock, long threads) {
    (void)lock;
    (void)threads;
}

__attribute__((noinline)) static int call_is_taken(struct call_lock *l) {
    return atomic_load_explicit(&l->taken, memory_order_relaxed);
}

#endif

static void IN(backoff_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct backoff_lock *l = lock;
    int turns = 1;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) {
        do {
            for (int i = 0; i < turns; i++) {
                __asm__ volatile(""); // keeps the loop without `pause`
                SPIN_PAUSE();
            }
            turns = turns < BACKOFF_MOST ? 2 * turns : BACKOFF_MOST;
        } while (atomic_load_explicit(&l->taken, memory_order_relaxed));
    }
}

static void IN(backoff_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct backoff_lock *l = lock;
    atomic_store_explicit(&l->taken, 0, memory_order_release);
}

static void IN(call_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct call_lock *l = lock;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire))
        while (call_is_taken(l))
            SPIN_PAUSE();
}

static void IN(call_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct call_lock *l = lock;
    atomic_store_explicit(&l->taken, 0, memory_order_release);
}

static void IN(counted_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct counted_lock *l = lock;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) {
        for (int i = 0; i < COUNTED_TURNS && atomic_load_explicit(&l->taken, memory_order_relaxed);
             i++)
            SPIN_PAUSE();
        sched_yield();
    }
}

static void IN(counted_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct counted_lock *l = lock;
    atomic_store_explicit(&l->taken, 0, memory_order_release);
}
