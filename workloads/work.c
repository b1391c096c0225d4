/* SPDX-License-Identifier: MIT */
// Programs that only compute, in loops that a reader of machine code might take for waiting.
//
//     work reduction --threads 8 --seconds 1
//
// reduction adds up the same numbers again and again; delay counts, and does nothing else; random draws numbers until one
// is rare. Prints one line of JSON as sync does; a round is a piece of work.
#include <stdatomic.h>

#include "threads.h"

static atomic_int stop;

enum { NUMBERS = 1 << 14, TURNS = 1 << 15 };
static uint32_t numbers[NUMBERS];

static uint64_t reduction(uint64_t x) {
    for (int i = 0; i < NUMBERS; i++)
        x += numbers[i];
    return x;
}

static uint64_t delay(uint64_t x) {
    for (int i = 0; i < TURNS; i++)
        __asm__ volatile(""); // or else nothing is left of it
    return x + 1;
}

static uint64_t random_numbers(uint64_t x) {
    do {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    } while (x % TURNS);
    return x;
}

static const struct piece {
    const char *name;
    uint64_t (*work)(uint64_t);
} pieces[] = {{"reduction", reduction}, {"delay", delay}, {"random", random_numbers}};
static const struct piece *piece;

static void *start(void *argument) {
    struct worker *w = argument;
    w->sum += 88172645463325252u;
    pthread_barrier_wait(&gate);
    w->start = now();
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        w->sum = piece->work(w->sum);
        w->count++;
    }
    w->end = now();
    return NULL;
}

int main(int argc, char **argv) {
    options = parse(argc, argv);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        if (!strcmp(options.workload, pieces[i].name))
            piece = &pieces[i];
    if (!piece)
        fail("unknown workload %s", options.workload);
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    create_threads(start, 1);
    pthread_barrier_wait(&gate);
    sleep_for(options.seconds);
    atomic_store(&stop, 1);
    join_threads();
    for (long i = 0; i < options.threads; i++)
        if (workers[i].sum == 0)
            fail("a thread has computed nothing");
    struct span span = span_of_workers();
    report(&options, total(), span_seconds(&span), -1);
    return 0;
}
