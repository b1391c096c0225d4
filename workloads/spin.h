/* SPDX-License-Identifier: MIT */
// Shared by the patterns of spin.c: their options, the tokens that pipelines pass on, and locks.
#ifndef LISSOM_WORKLOADS_SPIN_H
#define LISSOM_WORKLOADS_SPIN_H

#include "locks/all.h"
#include "threads.h"

// Options that sync does not have.
static const struct lock_kind *kind;
static int pauses = 1;
static long tokens = 1, numa_nodes;

static char members[512]; // for the line of JSON

__attribute__((format(printf, 1, 2))) static void member(const char *format, ...) {
    size_t used = strlen(members);
    va_list list;
    va_start(list, format);
    vsnprintf(members + used, sizeof members - used, format, list);
    va_end(list);
}

// Two loops, so that the one without `pause` does not test in each iteration whether to pause.
#define WAIT_UNTIL(condition) \
    do { \
        if (pauses) \
            while (!(condition)) \
                CPU_PAUSE(); \
        else \
            while (!(condition)) \
                ; \
    } while (0)

// --- tokens of the pipelines: plain memory, so the hand-over has to order accesses ---------------

static struct token {
    alignas(LINE) long steps; // number of steps taken so far
} *token;

static void tokens_prepare(void) { token = memory(sizeof *token * (size_t)tokens); }

// Work on the token of pass `pass`: a stage takes the tokens in turn.
static void take_step(struct worker *w, long pass) {
    struct token *t = &token[pass % tokens];
    expect("the number of steps that a token has taken", t->steps,
           pass / tokens * options.threads + w->index);
    w->sum = compute(w->sum, share(options.work, options.threads, w->index));
    t->steps++;
    w->count++;
}

static void tokens_check(void) {
    long steps = 0;
    for (long i = 0; i < tokens; i++)
        steps += token[i].steps;
    expect("the number of steps", steps, options.rounds * options.threads);
    expect("the number of passes", total(), steps);
}

// --- locks ---------------------------------------------------------------------------------------

static void *new_lock(long threads) {
    void *lock = memory(kind->size + kind->per_thread * (size_t)threads);
    kind->init(lock, threads);
    return lock;
}

static struct lock_node *new_nodes(long count) {
    return memory(sizeof(struct lock_node) * (size_t)count);
}

// Set up a node: user number `user` of the lock is thread `index` of the program.
static void name_node(struct lock_node *node, long user, long index) {
    node->index = user;
    node->numa = numa_nodes > 0 ? index % numa_nodes : -1;
}

static void lock_describe(void) { member("\"lock\": \"%s\", ", kind->name); }

// --- one lock, for patterns in which all threads want the same -----------------------------------

static void *the_lock;
static struct lock_node *the_nodes;
static long sections; // protected by the lock

static void one_lock_prepare(void) {
    the_lock = new_lock(options.threads);
    the_nodes = new_nodes(options.threads);
    for (long i = 0; i < options.threads; i++)
        name_node(&the_nodes[i], i, i);
}

#endif
