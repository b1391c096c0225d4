/* SPDX-License-Identifier: MIT */
// What the workloads on pthreads share: the threads, the gate that they pass together, and what is
// added up and checked in the end.
#ifndef LISSOM_WORKLOADS_THREADS_H
#define LISSOM_WORKLOADS_THREADS_H

#include <pthread.h>
#include <stdalign.h>

#include "sync.h"

struct worker {
    alignas(LINE) pthread_t thread; // neighbours do not share a cache line
    long index;
    long count;   // what it has done; the meaning depends on the pattern
    long blocked; // how often it has given up spinning
    uint64_t sum;
    double start, end;
};

static struct options options;
static struct worker *workers;
static pthread_barrier_t gate;

// Zeroed, and in cache lines of its own.
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

// `others` of the program pass the gate too.
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

// From the first that began to the last that ended.
__attribute__((unused)) static struct span span_of_workers(void) {
    struct span span = {0, 0};
    for (long i = 0; i < options.threads; i++)
        span_add(&span, workers[i].start, workers[i].end);
    return span;
}

// What the thread that has done least has done, as a part of the mean.
static inline double fairness(long done) {
    long least = workers[0].count;
    for (long i = 0; i < options.threads; i++)
        least = workers[i].count < least ? workers[i].count : least;
    return (double)least * (double)options.threads / (double)(done ? done : 1);
}

// While the others work. A signal does not shorten it.
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
