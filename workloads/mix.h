/* SPDX-License-Identifier: MIT */
// Shared by the programs of `lissom bench mixes`: options, rounds, and the line of JSON that each
// prints. A round computes the program's whole problem anew. Its checksum depends only on --size:
// not on the number of threads, nor on which thread computes which part.
//
//     PROGRAM [--threads N] [--size N] [--rounds N] [--seconds S]
#ifndef LISSOM_WORKLOADS_MIX_H
#define LISSOM_WORKLOADS_MIX_H

#include "sync.h"

struct mix {
    const char *program;
    long threads;
    long size; // of the problem; the unit depends on the program
    long rounds;
    double seconds; // > 0: run for so long, instead of `rounds`
    // Set by mix_run and mix_next.
    long done;
    uint64_t checksum;
    double begun;
};

static struct mix mix_parse(const char *program, long size, long rounds, int argc, char **argv) {
    struct mix m = {.program = program, .threads = 2, .size = size, .rounds = rounds};
    if (argc % 2 == 0)
        fail("usage: %s [--threads N] [--size N] [--rounds N] [--seconds S]", program);
    const struct setting known[] = {{"--threads", &m.threads, NULL},
                                    {"--size", &m.size, NULL},
                                    {"--rounds", &m.rounds, NULL},
                                    {"--seconds", NULL, &m.seconds},
                                    {0}};
    read_settings(known, argc - 1, argv + 1);
    if (m.threads < 1 || m.threads > 10000 || m.size < 1 || m.rounds < 1)
        fail("--threads must be 1 to 10000, --size and --rounds at least 1");
    return m;
}

// Continue an FNV-1a hash with `data`. hash 0 starts one.
static inline uint64_t mix_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    if (!hash)
        hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

// Number `i` of stream `seed` (splitmix64): no thread needs another's state.
static inline uint64_t mix_random(uint64_t seed, uint64_t i) {
    uint64_t x = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Number `i` of stream `seed`, in [0, 1).
static inline double mix_uniform(uint64_t seed, uint64_t i) {
    return (double)(mix_random(seed, i) >> 11) * 0x1p-53;
}

// Allocate zeroed memory, in cache lines of its own.
static inline void *mix_memory(size_t bytes) {
    void *p = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (!p)
        fail("no memory");
    return memset(p, 0, bytes);
}

// End a round: compare its checksum with the first one's. Returns whether to run another.
static int mix_next(struct mix *m, uint64_t checksum) {
    if (m->done && checksum != m->checksum)
        fail("%s: the checksum of round %ld is %016llx, that of the first %016llx", m->program,
             m->done + 1, (unsigned long long)checksum, (unsigned long long)m->checksum);
    m->checksum = checksum;
    m->done++;
    return m->seconds > 0 ? now() - m->begun < m->seconds : m->done < m->rounds;
}

static int mix_report(const struct mix *m) {
    double seconds = now() - m->begun;
    printf("{\"program\": \"%s\", \"threads\": %ld, \"size\": %ld, \"rounds\": %ld, \"seconds\": "
           "%.6f, "
           "\"checksum\": \"%016llx\"}\n",
           m->program, m->threads, m->size, m->done, seconds, (unsigned long long)m->checksum);
    return 0;
}

// Run all rounds and print the line of JSON. Returns the exit code. Pre: `round` computes the whole
// problem and returns its checksum.
static int mix_run(struct mix *m, uint64_t (*round)(void)) {
    m->begun = now();
    while (mix_next(m, round()))
        ;
    return mix_report(m);
}

#endif
