/* SPDX-License-Identifier: MIT */
// Direct cost of a context switch: threads on one CPU (the caller binds them) share a fixed amount
// of work.
//
//     switch compute --threads 8 --rounds 100000 --work 5000
//
// compute only computes, so only time slices switch it. atomic adds to a shared counter after each
// piece. yield calls sched_yield after each piece. futex passes a turn from thread to thread after
// each piece. Prints one line of JSON as sync does; a round is a piece.
#define _GNU_SOURCE
#include <sched.h>

#include "handover.h"

static const struct pattern {
    const char *name;
    void (*work)(struct worker *);
} *pattern;

static struct {
    alignas(LINE) atomic_long count;
} shared;
static struct turn *turns;

static void compute_work(struct worker *w) {
    for (; w->count > 0; w->count--)
        w->sum = compute(w->sum, options.work);
}

static void atomic_work(struct worker *w) {
    for (; w->count > 0; w->count--) {
        w->sum = compute(w->sum, options.work);
        atomic_fetch_add_explicit(&shared.count, 1, memory_order_relaxed);
    }
}

static void yield_work(struct worker *w) {
    for (; w->count > 0; w->count--) {
        w->sum = compute(w->sum, options.work);
        sched_yield();
    }
}

static void futex_work(struct worker *w) {
    long next = (w->index + 1) % options.threads;
    for (; w->count > 0; w->count--) {
        turn_take(turns, w->index);
        w->sum = compute(w->sum, options.work);
        turn_give(turns, next);
    }
}

static const struct pattern patterns[] = {
    {"compute", compute_work},
    {"atomic", atomic_work},
    {"yield", yield_work},
    {"futex", futex_work},
};

static void *start(void *argument) {
    struct worker *w = argument;
    w->count = share(options.rounds, options.threads, w->index);
    pthread_barrier_wait(&gate);
    if (w->index == 0)
        count_from_here();
    w->start = now();
    pattern->work(w);
    w->end = now();
    return NULL;
}

int main(int argc, char **argv) {
    options = parse(argc, argv);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(patterns[i].name, options.workload))
            pattern = &patterns[i];
    if (!pattern)
        fail("unknown workload %s", options.workload);
    // In the ring all threads have the same number of turns.
    options.rounds = (options.rounds + options.threads - 1) / options.threads * options.threads;
    turns = memory(sizeof *turns * (size_t)options.threads);
    atomic_store(&turns[0].mine, 1);
    create_threads(start, 0);
    join_threads();
    expect("what is left to do", total(), 0);
    if (pattern->work == atomic_work)
        expect("the shared counter", shared.count, options.rounds);
    struct span span = span_of_workers();
    report(&options, options.rounds, span_seconds(&span), -1);
    return 0;
}
