/* SPDX-License-Identifier: MIT */
// Shared by the programs of splash/: the primitives of the PARMACS macros (Lusk, Overbeek et al.,
// "Portable Programs for Parallel Processors", 1987), in which SPLASH-2 is written, with POSIX
// threads. A lock is a mutex. A barrier and a pause flag are a mutex and a condition variable.
//
// Counts in the line of JSON: "barriers": episodes, not arrivals; "locks": acquisitions of program
// locks; "pauses": waits for a flag; "spins": busy waits that found their condition false.
#ifndef LISSOM_WORKLOADS_SPLASH_PARMACS_H
#define LISSOM_WORKLOADS_SPLASH_PARMACS_H

#include <pthread.h>
#include <stdatomic.h>

#include "../suite.h"

struct counts {
    long locks, pauses, spins;
};

static _Thread_local struct counts mine; // of the calling thread

struct barrier {
    pthread_mutex_t mutex;
    pthread_cond_t open;
    long members, waiting;
    long episodes; // completed
};

static inline void barrier_init(struct barrier *b, long members) {
    *b = (struct barrier){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, members, 0, 0};
}

static inline void barrier_wait(struct barrier *b) {
    pthread_mutex_lock(&b->mutex);
    long episode = b->episodes;
    if (++b->waiting == b->members) {
        b->waiting = 0;
        b->episodes++;
        pthread_cond_broadcast(&b->open);
    }
    while (episode == b->episodes)
        pthread_cond_wait(&b->open, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
}

static inline void lock(pthread_mutex_t *mutex) {
    mine.locks++;
    pthread_mutex_lock(mutex);
}

static inline void unlock(pthread_mutex_t *mutex) { pthread_mutex_unlock(mutex); }

// PARMACS's "pause": one thread sets the flag, another waits for it and clears it.
struct flag {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int set;
};

static inline void flag_init(struct flag *f) {
    *f = (struct flag){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
}

static inline void flag_set(struct flag *f) {
    pthread_mutex_lock(&f->mutex);
    f->set = 1;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->mutex);
}

static inline void flag_wait(struct flag *f) {
    mine.pauses++;
    pthread_mutex_lock(&f->mutex);
    while (!f->set)
        pthread_cond_wait(&f->changed, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
}

static inline void flag_clear(struct flag *f) {
    pthread_mutex_lock(&f->mutex);
    f->set = 0;
    pthread_mutex_unlock(&f->mutex);
}

struct team {
    long threads;
    struct barrier barrier;
    pthread_mutex_t mutex; // protects the members below
    long next_id;
    struct counts total;
    void (*work)(struct team *team, long id, void *shared);
    void *shared;
};

static inline void *team_member(void *argument) {
    struct team *team = argument;
    mine = (struct counts){0};
    lock(&team->mutex);
    long id = team->next_id++;
    unlock(&team->mutex);
    team->work(team, id, team->shared);
    pthread_mutex_lock(&team->mutex);
    team->total.locks += mine.locks;
    team->total.pauses += mine.pauses;
    team->total.spins += mine.spins;
    pthread_mutex_unlock(&team->mutex);
    return NULL;
}

// Run work(team, id, shared) in all threads, including the calling one, and wait for them to end.
// Time it, and add to the counts of `s`.
static inline void team_run(struct suite *s, void (*work)(struct team *, long, void *),
                            void *shared) {
    struct team team = {
        .threads = s->threads, .mutex = PTHREAD_MUTEX_INITIALIZER, .work = work, .shared = shared};
    pthread_t *thread = suite_memory(sizeof *thread * (size_t)team.threads);
    barrier_init(&team.barrier, team.threads);
    suite_start(s);
    for (long i = 1; i < team.threads; i++) {
        int error = pthread_create(thread + i, NULL, team_member, &team);
        if (error)
            fail("%s: cannot create thread %ld: %s", s->program, i, strerror(error));
    }
    team_member(&team);
    for (long i = 1; i < team.threads; i++)
        pthread_join(thread[i], NULL);
    suite_stop(s);
    free(thread);
    suite_count(s, "barriers", team.barrier.episodes);
    suite_count(s, "locks", team.total.locks);
    suite_count(s, "pauses", team.total.pauses);
    suite_count(s, "spins", team.total.spins);
}

// Return the rows of the most square grid of rows x columns threads.
static inline long team_rows(long threads) {
    long rows = 1;
    for (long i = 1; i * i <= threads; i++)
        rows = threads % i ? rows : i;
    return rows;
}

#endif
