/* SPDX-License-Identifier: MIT */
// Cost of a context switch by cold caches and TLBs: threads on one CPU (the caller binds them) walk
// over an array, each over its part, and pass the turn on after each walk.
//
//     locality random-write --threads 2 --work 256 --seconds 0.1
//
// --work is the size of the array in KiB. A walk accesses each cache line once: sequentially, or at
// random, by a chain through all lines of a part in random order. So the next address is known only
// when the line has arrived. A write changes the line. There are three phases, each of about
// `seconds`: one thread walks over the whole array; the threads do, with the same number of walks;
// the threads pass the turn on after one line each. The first pass of each phase is not counted.
//
// indirect_us = (time of the threads - time of the one) / turns - time of a turn with a line each
#include "handover.h"

struct line {
    alignas(64) struct line *next;
    uint64_t value;
};

static struct line *lines;
static struct turn *turns;
static long count; // number of lines
static int is_random, writes;
static long passes;
static int phase_of_one_line;

// Link lines first..end in a cycle, in random order if is_random: Sattolo's shuffle.
static void chain(long first, long end, uint64_t *random) {
    long n = end - first;
    uint32_t *order = memory(sizeof *order * (size_t)n);
    for (long i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (long i = n - 1; is_random && i > 0; i--) {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        long j = (long)(*random % (uint64_t)i);
        uint32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (long i = 0; i < n; i++)
        lines[first + order[i]].next = &lines[first + order[(i + 1) % n]];
    free(order);
}

static void chains(long parts) {
    uint64_t random = 88172645463325252u;
    for (long i = 0; i < parts; i++)
        chain(count * i / parts, count * (i + 1) / parts, &random);
}

static uint64_t walk(long first, long end) {
    uint64_t sum = 0;
    long n = phase_of_one_line ? 1 : end - first;
    if (is_random) {
        struct line *l = &lines[first];
        for (long i = 0; i < n; i++, l = l->next)
            sum += writes ? l->value++ : l->value;
    } else {
        for (long i = first; i < first + n; i++)
            sum += writes ? lines[i].value++ : lines[i].value;
    }
    return sum;
}

static void *start(void *argument) {
    struct worker *w = argument;
    long n = options.threads, first = count * w->index / n, end = count * (w->index + 1) / n;
    pthread_barrier_wait(&gate);
    for (long pass = -1; pass < passes; pass++) {
        if (n > 1)
            turn_take(turns, w->index);
        if (pass == 0)
            w->start = now();
        w->sum += walk(first, end);
        if (n > 1)
            turn_give(turns, (w->index + 1) % n);
    }
    w->end = now();
    return NULL;
}

// Return the seconds that `threads` threads need for `times` passes over the array, each over its
// part or, with one_line, over its first line.
static double run(long threads, long times, int one_line) {
    options.threads = threads;
    passes = times;
    phase_of_one_line = one_line;
    turns = memory(sizeof *turns * (size_t)threads);
    atomic_store(&turns[0].mine, 1);
    create_threads(start, 0);
    join_threads();
    struct span span = span_of_workers();
    free(workers);
    free(turns);
    return span_seconds(&span);
}

int main(int argc, char **argv) {
    options = parse(argc, argv);
    static const char *names[] = {"sequential-read", "sequential-write", "random-read",
                                  "random-write"};
    int found = -1;
    for (int i = 0; i < 4; i++)
        if (!strcmp(names[i], options.workload))
            found = i;
    if (found < 0)
        fail("unknown workload %s", options.workload);
    is_random = found / 2;
    writes = found % 2;
    long threads = options.threads;
    count = options.work * 1024 / (long)sizeof(struct line);
    if (threads < 2 || count < threads || options.work > 1 << 22)
        fail("wanted are 2 threads or more, and --work from 1 to 4194304 (KiB)");
    double aim = options.seconds > 0 ? options.seconds : 0.1;
    lines = memory(sizeof *lines * (size_t)count);

    chains(1);
    long times = 1;
    double alone = run(1, times, 0);
    // With a small array turns take longer than walks, so their number limits the time.
    long most = (long)(aim / 3e-6) / threads + 1;
    while (alone < aim && times < most) {
        double factor = alone > 0 ? aim / alone * 1.1 : 10;
        times = (long)((double)times * (factor > 10 ? 10 : factor)) + 1;
        times = times < most ? times : most;
        alone = run(1, times, 0);
    }
    chains(threads);
    double together = run(threads, times, 0);
    long handovers = times * threads;
    double direct = run(threads, most, 1) / (double)(most * threads);
    double indirect = (together - alone) / (double)handovers - direct;
    printf("{\"workload\": \"%s\", \"threads\": %ld, \"kib\": %ld, \"passes\": %ld, \"seconds\": "
           "%.9f, "
           "\"seconds_alone\": %.9f, \"ns_per_access\": %.4f, \"ns_per_access_alone\": %.4f, "
           "\"direct_us\": %.4f, "
           "\"indirect_us\": %.4f}\n",
           options.workload, threads, options.work, times, together, alone,
           together * 1e9 / (double)(times * count), alone * 1e9 / (double)(times * count),
           direct * 1e6, indirect * 1e6);
    return 0;
}
