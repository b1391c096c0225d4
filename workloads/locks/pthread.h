/* SPDX-License-Identifier: MIT */
// The C library's pthread_spinlock_t (POSIX.1-2001), with the library's own wait loop. The library
// chooses whether that pauses (glibc on x86 does). So the instance without `pause` waits here, by
// trying: each iteration is an atomic read-modify-write, as in naive test-and-set locks.
//
// Memory ordering: the library's.
#ifndef LISSOM_WORKLOADS_PTHREAD_H
#define LISSOM_WORKLOADS_PTHREAD_H

#include <pthread.h>

struct pthread_lock {
    alignas(LINE) pthread_spinlock_t spin;
};

static void pthread_init(void *lock, long threads) {
    (void)threads;
    struct pthread_lock *l = lock;
    pthread_spin_init(&l->spin, PTHREAD_PROCESS_PRIVATE);
}

#endif

static void IN(pthread_acquire)(void *lock, struct lock_node *self) {
    (void)self;
    struct pthread_lock *l = lock;
#if SPIN_PAUSES
    pthread_spin_lock(&l->spin);
#else
    while (pthread_spin_trylock(&l->spin) != 0)
        SPIN_PAUSE();
#endif
}

static void IN(pthread_release)(void *lock, struct lock_node *self) {
    (void)self;
    struct pthread_lock *l = lock;
    pthread_spin_unlock(&l->spin);
}
