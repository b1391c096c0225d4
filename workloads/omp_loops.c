/* SPDX-License-Identifier: MIT */
// OpenMP loops whose threads call the library for each chunk, and short parallel regions.
//
//     omp_loops dynamic --threads 32 --rounds 1500 --iterations 3000 --kib 16
//
// dynamic, guided: one region with --rounds loops of that schedule. region: --rounds regions with
// one static loop each. An iteration reads --kib KiB of its thread's own buffer. Prints one line of
// JSON as sync does; a round is a loop.
#include <omp.h>

#include "sync.h"

enum { WORDS_IN_KIB = 1024 / sizeof(uint64_t), WORDS_IN_LINE = 64 / sizeof(uint64_t) };

static long kib;
static uint64_t **buffer; // one for each thread

static inline uint64_t iteration(void) {
    const volatile uint64_t *word = buffer[omp_get_thread_num()];
    uint64_t sum = 0;
    for (long i = 0; i < kib * WORDS_IN_KIB; i += WORDS_IN_LINE)
        sum += word[i];
    return sum;
}

// Each function runs o->rounds loops and returns the number of iterations.

#define PRAGMA(text) _Pragma(#text)
#define LOOPS(kind) \
    static uint64_t kind##_loops(const struct options *o) { \
        uint64_t done = 0; \
        PRAGMA(omp parallel num_threads((int)o->threads) reduction(+ : done)) \
        for (long round = 0; round < o->rounds; round++) { \
            PRAGMA(omp for schedule(kind)) \
            for (long i = 0; i < o->work; i++) \
                done += iteration(); \
        } \
        return done; \
    }
LOOPS(dynamic)
LOOPS(guided)

static uint64_t regions(const struct options *o) {
    uint64_t done = 0;
    for (long round = 0; round < o->rounds; round++) {
#pragma omp parallel for num_threads((int)o->threads) reduction(+ : done) schedule(static)
        for (long i = 0; i < o->work; i++)
            done += iteration();
    }
    return done;
}

static const struct loops {
    const char *name;
    uint64_t (*run)(const struct options *);
} all_loops[] = {{"dynamic", dynamic_loops}, {"guided", guided_loops}, {"region", regions}};

int main(int argc, char **argv) {
    struct options o = {.threads = 2, .rounds = 1, .work = 1000};
    if (argc < 2 || argc % 2 != 0)
        fail(
            "usage: %s dynamic|guided|region [--threads N] [--rounds N] [--iterations N] [--kib N]",
            argv[0]);
    o.workload = argv[1];
    kib = 16;
    const struct setting known[] = {{"--threads", &o.threads, NULL},
                                    {"--rounds", &o.rounds, NULL},
                                    {"--iterations", &o.work, NULL},
                                    {"--kib", &kib, NULL},
                                    {0}};
    read_settings(known, argc - 2, argv + 2);
    if (o.threads < 1 || o.threads > 100000 || o.rounds < 1 || kib < 1)
        fail("--threads must be 1 to 100000, --rounds and --kib at least 1");
    const struct loops *l = all_loops, *end = l + sizeof all_loops / sizeof *all_loops;
    while (l < end && strcmp(l->name, o.workload))
        l++;
    if (l == end)
        fail("unknown workload %s", o.workload);
    omp_set_dynamic(0);
    buffer = calloc((size_t)o.threads, sizeof *buffer);
#pragma omp parallel num_threads((int)o.threads)
    {
        // A team may be smaller than o.threads (lissom run --omp-team=slots), a later one larger.
#pragma omp for schedule(static, 1)
        for (long t = 0; t < o.threads; t++) {
            uint64_t *words = buffer ? malloc((size_t)kib * 1024) : NULL;
            if (!words)
                fail("out of memory");
            for (long i = 0; i < kib * WORDS_IN_KIB; i++)
                words[i] = i == 0; // an iteration's sum is 1
            buffer[t] = words;
        }
    }
    double begun = now();
    uint64_t done = l->run(&o);
    double seconds = now() - begun;
    if (done != (uint64_t)o.rounds * (uint64_t)o.work)
        fail("%llu iterations were done, not %ld", (unsigned long long)done, o.rounds * o.work);
    report(&o, o.rounds, seconds, -1);
    return 0;
}
