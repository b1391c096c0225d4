/* SPDX-License-Identifier: MIT */
// Shared by the workloads with pthreads: the threads, the gate that they pass together, and the
// counts that are added up and checked at the end.
#ifndef LISSOM_WORKLOADS_THREADS_H
#define LISSOM_WORKLOADS_THREADS_H

#include <pthread.h>
#include <stdalign.h>

#include "sync.h"

struct worker {
    alignas(LINE) pthread_t thread; // aligned: neighbours do not share a cache line
    long index;
    long count;   // work done; the unit depends on the pattern
    long blocked; // number of times that it gave up spinning
    uint64_t sum;
    double start, end;
};

static struct options options;
static struct worker *workers;
static pthread_barrier_t gate;

// Allocate zeroed memory, in cache lines of its own.
static void *memory(size_t bytes) {
    bytes = (bytes + LINE - 1) / LINE * LINE;
    void *p = aligned_alloc(LINE, bytes);
    if (!p)
        fail("no memory");
    return memset(p, 0, bytes);
}

__attribute__((unused)) static long total(void) {
    long sum = 0;
    for (long i = 0; i < options.threads; i++)
        sum += workers[i].count;
    return sum;
}

static inline void expect(const char *what, long seen, long expected) {
    if (seen != expected)
        fail("%s: %s is %ld and should be %ld", options.workload, what, seen, expected);
}

// Create the threads. others: number of other threads that pass the gate too.
static void create_threads(void *(*function)(void *), long others) {
    workers = memory(sizeof *workers * (size_t)options.threads);
    pthread_barrier_init(&gate, NULL, (unsigned)(options.threads + others));
    for (long i = 0; i < options.threads; i++) {
        workers[i].index = i;
        workers[i].sum = (uint64_t)i;
        int error = pthread_create(&workers[i].thread, NULL, function, &workers[i]);
        if (error)
            fail("thread %ld of %ld cannot be created: %s", i + 1, options.threads,
                 strerror(error));
    }
}

static void join_threads(void) {
    for (long i = 0; i < options.threads; i++)
        pthread_join(workers[i].thread, NULL);
}

// Return the span from the start of the first worker to the end of the last.
__attribute__((unused)) static struct span span_of_workers(void) {
    struct span span = {0, 0};
    for (long i = 0; i < options.threads; i++)
        span_add(&span, workers[i].start, workers[i].end);
    return span;
}

// Return the least count of a thread, relative to the mean. done: count of all threads.
static inline double fairness(long done) {
    long least = workers[0].count;
    for (long i = 0; i < options.threads; i++)
        least = workers[i].count < least ? workers[i].count : least;
    return (double)least * (double)options.threads / (double)(done ? done : 1);
}

// Sleep for that long, also when signals arrive.
static void sleep_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static inline int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
