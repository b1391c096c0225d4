/* SPDX-License-Identifier: MIT */
// Shared by the synchronization workloads: options, the clock, a calibrated piece of work, and the
// line of JSON that each prints.
#ifndef LISSOM_WORKLOADS_SYNC_H
#define LISSOM_WORKLOADS_SYNC_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LINE = 128 }; // two cache lines: the prefetcher fetches them in pairs

struct options {
    const char *workload;
    long threads;
    long rounds;    // of all threads together
    long work;      // iterations of compute() in a unit that depends on the workload
    long outside;   // iterations of compute() outside of a critical section
    double seconds; // > 0: run for so long, instead of `rounds`
    long cpu;       // >= 0: the CPU of a hog
};

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("sync: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

static double number(const char *name, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !(value >= 0 && value <= 1e15))
        fail("%s wants a number, not `%s`", name, text);
    return value;
}

// An option with a number, and the variable for it: one of the two.
struct setting {
    const char *option;
    long *whole;
    double *real;
};

// Read options and their numbers. Pre: the last of `known` is all zeros; `words` is even.
static void read_settings(const struct setting *known, int words, char **word) {
    for (int i = 0; i < words; i += 2) {
        double value = number(word[i], word[i + 1]);
        const struct setting *s = known;
        while (s->option && strcmp(s->option, word[i]))
            s++;
        if (s->whole)
            *s->whole = (long)value;
        else if (s->real)
            *s->real = value;
        else
            fail("unknown option %s", word[i]);
    }
}

__attribute__((unused)) static struct options parse(int argc, char **argv) {
    struct options o = {.threads = 2, .rounds = 1000, .cpu = -1};
    if (argc < 2 || argc % 2 != 0)
        fail("usage: %s WORKLOAD [--threads N] [--rounds N] [--work N] [--outside N] [--seconds S] "
             "[--cpu N]",
             argv[0]);
    o.workload = argv[1];
    const struct setting known[] = {{"--threads", &o.threads, NULL},
                                    {"--rounds", &o.rounds, NULL},
                                    {"--work", &o.work, NULL},
                                    {"--outside", &o.outside, NULL},
                                    {"--seconds", NULL, &o.seconds},
                                    {"--cpu", &o.cpu, NULL},
                                    {0}};
    read_settings(known, argc - 2, argv + 2);
    if (o.threads < 1 || o.threads > 100000 || o.rounds < 1)
        fail("--threads must be 1 to 100000, and --rounds at least 1");
    return o;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Compute with a chain of dependent steps: the time depends only on the clock rate, and the
// compiler can neither shorten nor vectorize it.
__attribute__((noinline, unused)) static uint64_t compute(uint64_t x, long iterations) {
    for (long i = 0; i < iterations; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

// A parallel phase, from the start of the first thread to the end of the last.
struct span {
    double first, last; // both 0: no thread yet
};

__attribute__((unused)) static void span_add(struct span *span, double begun, double ended) {
    span->first = span->first == 0 || begun < span->first ? begun : span->first;
    span->last = ended > span->last ? ended : span->last;
}

__attribute__((unused)) static double span_seconds(const struct span *span) {
    return span->last - span->first;
}

// Return the size of part `index` of `total`, divided into `parts`. The parts add up to the total.
static inline long share(long total, long parts, long index) {
    return total / parts + (index < total % parts);
}

// Return a line of /proc/self/status in KiB; 0 if it is missing. Not getrusage's ru_maxrss, which
// includes the program before an exec.
static long status_kib(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
            kib = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return kib;
}

// The process's use of resources at count_from_here; zeros count from its start.
static struct rusage counted_from;

static inline void count_from_here(void) { getrusage(RUSAGE_SELF, &counted_from); }

static inline double time_seconds(struct timeval t) {
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

struct used {
    double cpu_seconds;
    long voluntary, involuntary; // context switches
};

static inline struct used used_from_there(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (struct used){
        time_seconds(u.ru_utime) - time_seconds(counted_from.ru_utime) + time_seconds(u.ru_stime) -
            time_seconds(counted_from.ru_stime),
        u.ru_nvcsw - counted_from.ru_nvcsw,
        u.ru_nivcsw - counted_from.ru_nivcsw,
    };
}

static double late_us = -1; // result of the workload `late`; < 0: not measured

// Print the line of JSON. fairness: < 0: not measured. Pre: the measured phase has just ended
// (reported_at is the time now, by CLOCK_MONOTONIC).
__attribute__((unused)) static void report(const struct options *o, long rounds, double seconds,
                                           double fairness) {
    char fair[32] = "null", late[32] = "null";
    struct used used = used_from_there();
    if (fairness >= 0)
        snprintf(fair, sizeof fair, "%.4f", fairness);
    if (late_us >= 0)
        snprintf(late, sizeof late, "%.1f", late_us);
    printf(
        "{\"workload\": \"%s\", \"threads\": %ld, \"rounds\": %ld, \"seconds\": %.6f, "
        "\"us_per_round\": %.4f, \"fairness\": %s, \"late_us\": %s, \"max_rss_kib\": %ld, "
        "\"cpu_seconds\": %.6f, \"voluntary\": %ld, \"involuntary\": %ld, \"reported_at\": %.6f}\n",
        o->workload, o->threads, rounds, seconds, seconds * 1e6 / (double)(rounds ? rounds : 1),
        fair, late, status_kib("VmHWM"), used.cpu_seconds, used.voluntary, used.involuntary, now());
}

#endif
