/* SPDX-License-Identifier: MIT */
// Shared by the locks of preload.c: their layout in a pthread_mutex_t, time, and sleeping.
#ifndef LISSOM_WORKLOADS_PRELOAD_H
#define LISSOM_WORKLOADS_PRELOAD_H

#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// A lock in place of glibc's fields, except `kind`, the type of mutex that the program asked for.
// All zeros is free, so PTHREAD_MUTEX_INITIALIZER is as good as pthread_mutex_init.
struct preload_lock {
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
    uint16_t taken, slept; // protected by the lock: see mutexee.h
    uint32_t mode;
    int kind;
    _Atomic(void *) tail;
    void *owner; // protected by the lock: the holder's node
};
_Static_assert(sizeof(struct preload_lock) <= sizeof(pthread_mutex_t), "it has to fit");
_Static_assert(offsetof(struct preload_lock, kind) == offsetof(pthread_mutex_t, __data.__kind),
               "it stays glibc's");

static inline void preload_pause(void) {
#if defined __x86_64__ || defined __i386__
    __asm__ volatile("pause");
#endif
}

static inline int64_t preload_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Sleep while the word has this value. Spurious returns are possible.
static inline void preload_sleep(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static inline void preload_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
