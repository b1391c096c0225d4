/* SPDX-License-Identifier: MIT */
// Shared by programs of parsec/: threads that the main thread creates and joins, and PARSEC's
// barrier.
#ifndef LISSOM_WORKLOADS_PARSEC_TEAM_H
#define LISSOM_WORKLOADS_PARSEC_TEAM_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "../suite.h"

// A barrier with a mutex and a condition variable. An episode has two phases, arrival and
// departure. A thread that arrives before the last one has departed waits for that. Each episode
// broadcasts twice.
struct barrier {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long members, spins; // spins: polls of `episodes` before blocking
    long here, leaving;
    atomic_long episodes; // number of completed episodes
};

static inline void barrier_init(struct barrier *b, long members, long spins) {
    *b = (struct barrier){.mutex = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER,
                          .members = members,
                          .spins = spins};
}

static inline void barrier_wait(struct barrier *b) {
    pthread_mutex_lock(&b->mutex);
    while (b->leaving)
        pthread_cond_wait(&b->changed, &b->mutex);
    long episode = atomic_load_explicit(&b->episodes, memory_order_relaxed);
    if (++b->here == b->members) {
        b->here = 0;
        b->leaving = b->members - 1;
        atomic_store_explicit(&b->episodes, episode + 1, memory_order_release);
        pthread_cond_broadcast(&b->changed);
        pthread_mutex_unlock(&b->mutex);
        return;
    }
    if (b->spins) {
        pthread_mutex_unlock(&b->mutex);
        for (long i = 0; i < b->spins; i++)
            if (atomic_load_explicit(&b->episodes, memory_order_acquire) != episode)
                break;
        pthread_mutex_lock(&b->mutex);
    }
    while (atomic_load_explicit(&b->episodes, memory_order_relaxed) == episode)
        pthread_cond_wait(&b->changed, &b->mutex);
    if (--b->leaving == 0)
        pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
}

// Take `--spins N` out of the arguments. Returns N, or 0. PARSEC 3.0's barriers can spin for 35000
// iterations, at most 0.1 ms when it was written.
static inline long take_spins(int *argc, char **argv) {
    long spins = 0;
    const struct setting known[] = {{"--spins", &spins, NULL}, {0}};
    for (int i = 1; i + 1 < *argc; i += 2)
        if (!strcmp(argv[i], "--spins")) {
            read_settings(known, 2, argv + i);
            *argc -= 2;
            memmove(argv + i, argv + i + 2, (size_t)(*argc - i) * sizeof *argv);
            i -= 2;
        }
    return spins;
}

// A thread, in cache lines of its own.
struct member {
    alignas(LINE) pthread_t thread;
    long id;
    void (*work)(long id, void *shared);
    void *shared;
};

static void *member_main(void *argument) {
    struct member *m = argument;
    m->work(m->id, m->shared);
    return NULL;
}

// Run work(id, shared) in `threads` new threads, and wait for them to end.
static inline void team_run(long threads, void (*work)(long id, void *shared), void *shared) {
    struct member *member = suite_memory(sizeof *member * (size_t)threads);
    for (long i = 0; i < threads; i++) {
        member[i] = (struct member){.id = i, .work = work, .shared = shared};
        int error = pthread_create(&member[i].thread, NULL, member_main, member + i);
        if (error)
            fail("cannot create thread %ld of %ld: %s", i + 1, threads, strerror(error));
    }
    for (long i = 0; i < threads; i++)
        pthread_join(member[i].thread, NULL);
    free(member);
}

#endif
