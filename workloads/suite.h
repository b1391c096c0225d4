/* SPDX-License-Identifier: MIT */
// Shared by the programs of npb/, parsec/, splash/ and rodinia/: options, the timed section,
// verification, and the line of JSON that each prints. A round solves the whole problem once.
//
//     PROGRAM [--class NAME] [--threads N] [--rounds N] [--seconds S]
//
// --threads: default 0: OpenMP chooses, or one thread for each CPU. --seconds: start rounds for
// that long, instead of --rounds. Exit code 1: a round failed verification, or the options are
// wrong.
#ifndef LISSOM_WORKLOADS_SUITE_H
#define LISSOM_WORKLOADS_SUITE_H

#include <math.h>
#include <unistd.h>

#include "sync.h"

enum { SUITE_COUNTS = 8 };

struct suite {
    const char *program;
    const char *class_name;
    int class_index; // in the list given to suite_parse
    long threads;    // never 0 after suite_parse
    long rounds;
    double limit; // --seconds; 0: count rounds
    // The functions below set these.
    long done;
    double begun, started, seconds; // start of first round and of this section; sum of sections
    uint64_t checksum;
    int checked; // number of results compared so far
    struct {
        const char *name;
        long count;
    } counts[SUITE_COUNTS];
};

// Parse the options. classes: names of the problem sizes, ends with NULL; the first is the default.
static inline struct suite suite_parse(const char *program, const char *const *classes, int argc,
                                       char **argv) {
    struct suite s = {.program = program, .class_name = classes[0], .rounds = 1};
    const struct setting known[] = {{"--threads", &s.threads, NULL},
                                    {"--rounds", &s.rounds, NULL},
                                    {"--seconds", NULL, &s.limit},
                                    {0}};
    if (argc % 2 == 0)
        fail("usage: %s [--class NAME] [--threads N] [--rounds N] [--seconds S]", program);
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--class")) {
            read_settings(known, 2, argv + i);
            continue;
        }
        s.class_index = 0;
        while (classes[s.class_index] && strcmp(classes[s.class_index], argv[i + 1]))
            s.class_index++;
        s.class_name = classes[s.class_index];
        if (!s.class_name)
            fail("%s: there is no class %s; the first is %s", program, argv[i + 1], classes[0]);
    }
    if (s.threads > 10000 || s.rounds < 1)
        fail("%s: --threads must be 0 to 10000, and --rounds at least 1", program);
#ifdef _OPENMP
    if (s.threads)
        omp_set_num_threads((int)s.threads);
    s.threads = omp_get_max_threads();
#else
    if (!s.threads)
        s.threads = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    s.begun = now();
    return s;
}

// Allocate zeroed memory, in cache lines of its own.
static inline void *suite_memory(size_t bytes) {
    bytes = (bytes + LINE - 1) / LINE * LINE;
    void *p = aligned_alloc(LINE, bytes);
    if (!p)
        fail("no memory for %zu bytes", bytes);
    return memset(p, 0, bytes);
}

// Return the first item of part `index`, whose size is share().
static inline long share_start(long total, long parts, long index) {
    return index * (total / parts) + (index < total % parts ? index : total % parts);
}

// Return number `index` of sequence `seed`: SplitMix64 (Steele, Lea, Flood, 2014).
static inline uint64_t random_at(uint64_t seed, uint64_t index) {
    uint64_t z = (seed << 40) + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Return number `index` of sequence `seed`, in [0, 1).
static inline double uniform_at(uint64_t seed, uint64_t index) {
    return (double)(random_at(seed, index) >> 11) * 0x1p-53;
}

// Begin and end the section whose time counts.
static inline void suite_start(struct suite *s) { s->started = now(); }
static inline void suite_stop(struct suite *s) { s->seconds += now() - s->started; }

// Compare a result with the published one. `epsilon`: largest relative error.
static inline void suite_verify(struct suite *s, const char *what, double value, double published,
                                double epsilon) {
    double error = fabs(value - published) / (published != 0 ? fabs(published) : 1);
    if (!(error <= epsilon))
        fail("%s, class %s: %s is %.13e and should be %.13e", s->program, s->class_name, what,
             value, published);
    s->checked++;
}

// Continue an FNV-1a hash with `data`. hash 0 starts one.
static inline uint64_t suite_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    if (!hash)
        hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

// Compare the round's checksum with the first one's: the result depends only on the class.
static inline void suite_checksum(struct suite *s, uint64_t checksum) {
    if (s->done && checksum != s->checksum)
        fail("%s: the checksum of round %ld is %016llx, that of the first %016llx", s->program,
             s->done + 1, (unsigned long long)checksum, (unsigned long long)s->checksum);
    s->checksum = checksum;
    s->checked++;
}

// Add to a count of synchronization operations of all threads ("barriers", "locks", "waits").
// `name` is compared by address: pass a literal of one place.
static inline void suite_count(struct suite *s, const char *name, long count) {
    int i = 0;
    while (i < SUITE_COUNTS - 1 && s->counts[i].name && s->counts[i].name != name)
        i++;
    s->counts[i].name = name;
    s->counts[i].count += count;
}

// End a round. Returns whether to run another.
static inline int suite_next(struct suite *s) {
    s->done++;
    return s->limit > 0 ? now() - s->begun < s->limit : s->done < s->rounds;
}

// Print the line of JSON. Returns the exit code.
static inline int suite_report(const struct suite *s) {
    printf("{\"program\": \"%s\", \"class\": \"%s\", \"threads\": %ld, \"rounds\": %ld, "
           "\"seconds\": %.6f, \"verified\": %s, \"checksum\": \"%016llx\"",
           s->program, s->class_name, s->threads, s->done, s->seconds,
           s->checked ? "true" : "false", (unsigned long long)s->checksum);
    for (int i = 0; i < SUITE_COUNTS && s->counts[i].name; i++)
        printf(", \"%s\": %ld", s->counts[i].name, s->counts[i].count);
    printf("}\n");
    return !s->checked;
}

#endif
