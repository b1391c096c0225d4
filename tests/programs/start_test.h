/* SPDX-License-Identifier: MIT */
// Common part of the programs that test late activation: threads that take turns and wait for each
// other, in a process that had one thread until now.
#ifndef START_TEST_H
#define START_TEST_H
#include "pthread_test.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t s_changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t s_barrier;
static int s_turn, s_threads;
static atomic_int s_flag;

static inline void *s_work(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int round = 0; round < 5; round++) {
        pthread_barrier_wait(&s_barrier);
        pthread_mutex_lock(&s_mutex);
        while (s_turn % s_threads != me) pthread_cond_wait(&s_changed, &s_mutex);
        s_turn++;
        pthread_cond_broadcast(&s_changed);
        pthread_mutex_unlock(&s_mutex);
        // a loop with a spin site
        while (me < 4 && atomic_load(&s_flag) % 4 != me) __builtin_ia32_pause();
        if (me < 4) atomic_fetch_add(&s_flag, 1);
        t_sleep_us(200);
    }
    return arg;
}

// Run t_threads() threads and four more to their ends.
static inline void s_threads_work(void) {
    pthread_t t[1024];
    s_threads = (t_threads() > 1000 ? 1000 : t_threads()) + 4;
    s_turn = 0;
    atomic_store(&s_flag, 0);
    OK(pthread_barrier_init(&s_barrier, NULL, (unsigned)s_threads));
    for (int i = 0; i < s_threads; i++) t[i] = t_spawn(s_work, (void *)(intptr_t)i);
    for (int i = 0; i < s_threads; i++) EQ((intptr_t)t_join(t[i]), i);
    EQ(s_turn, 5 * s_threads);
    OK(pthread_barrier_destroy(&s_barrier));
}
#endif
