/* SPDX-License-Identifier: MIT */
// Programs that only compute, in loops that resemble waits in machine code.
//
//     work reduction --threads 8 --seconds 1
//
// reduction adds up the same numbers again and again. delay counts, and does nothing else. random
// draws numbers until one is rare. matmul computes a row of a product of two matrices. Prints one
// line of JSON as sync does; a round is a piece of work.
//
// Without --seconds it ends at SIGTERM. It then prints a line {"ready": true} first, when all
// threads compute. The line before the last is {"progress": [[time, rounds], ...]}, by
// CLOCK_MONOTONIC, from which the caller can evaluate a part of the time.
#include <semaphore.h>
#include <signal.h>
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
        __asm__ volatile(""); // keeps the loop
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

enum { SIDE = 256 };
static double left[SIDE][SIDE], right[SIDE][SIDE];

static uint64_t matmul(uint64_t x) {
    double row[SIDE] = {0};
    const double *factors = left[x % SIDE];
    for (int k = 0; k < SIDE; k++)
        for (int j = 0; j < SIDE; j++)
            row[j] += factors[k] * right[k][j];
    return x + 1 + (row[x % SIDE] < 0); // adds 0: no element is negative
}

static const struct piece {
    const char *name;
    uint64_t (*work)(uint64_t);
} pieces[] = {
    {"reduction", reduction}, {"delay", delay}, {"random", random_numbers}, {"matmul", matmul}};
static const struct piece *piece;

// --- progress: one thread records the rounds of all of them --------------------------------------

enum { STEPS = 1 << 14 };
static const double step_seconds = 0.002;
static struct {
    double time;
    long rounds;
} progress[STEPS];
static int steps;

static void write_down(double time) {
    long rounds = 0;
    for (long i = 0; i < options.threads; i++)
        rounds += __atomic_load_n(&workers[i].count, __ATOMIC_RELAXED);
    progress[steps].time = time;
    progress[steps++].rounds = rounds;
}

static void follow(void) {
    double time = now();
    if (steps < STEPS && time - progress[steps - 1].time > step_seconds)
        write_down(time);
}

static void print_progress(void) {
    printf("{\"progress\": [");
    for (int i = 0; i < steps; i++)
        printf("%s[%.6f, %ld]", i ? ", " : "", progress[i].time, progress[i].rounds);
    printf("]}\n");
}

// -------------------------------------------------------------------------------------------------

static sem_t asked;

static void ask(int number) {
    (void)number;
    sem_post(&asked);
}

static void *start(void *argument) {
    struct worker *w = argument;
    int follows = options.seconds == 0 && w->index == 0;
    w->sum += 88172645463325252u;
    pthread_barrier_wait(&gate);
    if (w->index == 0)
        count_from_here();
    w->start = now();
    if (follows)
        write_down(w->start);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        w->sum = piece->work(w->sum);
        __atomic_store_n(&w->count, w->count + 1, __ATOMIC_RELAXED);
        if (follows)
            follow();
    }
    w->end = now();
    if (follows && steps < STEPS)
        write_down(w->end); // the last steps may be long ago
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
    for (int i = 0; i < SIDE * SIDE; i++)
        left[i / SIDE][i % SIDE] = right[i / SIDE][i % SIDE] = i % 7;
    sem_init(&asked, 0, 0);
    if (options.seconds == 0)
        sigaction(SIGTERM, &(struct sigaction){.sa_handler = ask}, NULL);
    create_threads(start, 1);
    pthread_barrier_wait(&gate);
    if (options.seconds > 0) {
        sleep_for(options.seconds);
    } else {
        printf("{\"ready\": true}\n");
        fflush(stdout);
        while (sem_wait(&asked) != 0)
            ; // EINTR
    }
    atomic_store(&stop, 1);
    join_threads();
    for (long i = 0; i < options.threads; i++)
        if (workers[i].sum == 0)
            fail("a thread has computed nothing");
    struct span span = span_of_workers();
    if (options.seconds == 0)
        print_progress();
    report(&options, total(), span_seconds(&span), -1);
    return 0;
}
