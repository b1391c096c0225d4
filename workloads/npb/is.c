/* SPDX-License-Identifier: MIT */
// IS: rank integer keys by counting, ten times, with two keys changed before each. Specification:
// NAS report RNR-94-007 (Bailey, Barszcz et al., 1994). OpenMP structure: NPB 3, after NAS-99-011
// (Jin, Frumkin, Yan, 1999), in its variant without buckets.
//
// Synchronization: an iteration has 1 parallel region with 1 barrier and the join. Each thread
// counts its share of the keys in an array of its own and sums it up over all key values: this work
// does not shrink with more threads. After the barrier, the team adds the arrays of all threads,
// each thread a range of key values. Loops are static and balanced. Between the regions, the main
// thread alone changes keys and checks ranks.
//
// Difference from NPB: a thread allocates its array in an iteration that is not timed.
#include <omp.h>

#include "../suite.h"
#include "random.h"

enum {
    ITERATIONS = 10,
    TESTS = 5,
    BARRIERS = 2, // per iteration; one is the join
    MOST_THREADS = 16384,
};

// At iteration i, the key that was at `place` has rank `rank + i + offset` if `rises`, otherwise
// `rank - i - offset`.
struct test {
    long place, rank;
    int rises;
    int offset;
};

struct problem {
    int log_keys, log_values;
    struct test tests[TESTS];
};
static const char *const classes[] = {"S", "W", "A", "B", NULL};
static const struct problem problems[] = {
    {16,
     11,
     {{48427, 0, 1, 0},
      {17148, 18, 1, 0},
      {23627, 346, 1, 0},
      {62548, 64917, 0, 0},
      {4431, 65463, 0, 0}}},
    {20,
     16,
     {{357773, 1249, 1, -2},
      {934767, 11698, 1, -2},
      {875723, 1039987, 0, 0},
      {898999, 1043896, 0, 0},
      {404505, 1048018, 0, 0}}},
    {23,
     19,
     {{2112377, 104, 1, -1},
      {662041, 17523, 1, -1},
      {5336171, 123928, 1, -1},
      {3642833, 8288932, 0, -1},
      {4250760, 8388264, 0, -1}}},
    {25,
     21,
     {{41869, 33422937, 0, 0},
      {812306, 10244, 1, 0},
      {5102857, 59149, 1, 0},
      {18232239, 33135281, 0, 0},
      {26860214, 99, 1, 0}}},
};

struct sort {
    long keys, values;
    int *key;
    int *counts[MOST_THREADS]; // by thread, then by key value
};

// Make the keys, each the mean of four random numbers. Threads jump ahead to their shares.
static void make_keys(struct sort *sort) {
    double quarter = (double)sort->values / 4;
#pragma omp parallel
    {
        long team = omp_get_num_threads(), self = omp_get_thread_num();
        long first = sort->keys * self / team, end = sort->keys * (self + 1) / team;
        double seed = 314159265, four[4];
        npb_random(&seed, npb_power(NPB_MULTIPLIER, 4 * first));
        for (long i = first; i < end; i++) {
            npb_random_fill(4, &seed, NPB_MULTIPLIER, four);
            sort->key[i] = (int)(quarter * (four[0] + four[1] + four[2] + four[3]));
        }
    }
}

// Count the keys up to each value. Post: counts[0][v] is the number of keys from 0 to v.
static void rank_keys(struct sort *sort) {
    long keys = sort->keys, values = sort->values;
#pragma omp parallel
    {
        int team = omp_get_num_threads(), self = omp_get_thread_num();
        if (self >= MOST_THREADS)
            fail("npb/is: the limit is %d threads", MOST_THREADS);
        size_t bytes = sizeof(int) * (size_t)values;
        int *mine = sort->counts[self];
        if (!mine)
            mine = sort->counts[self] = suite_memory(bytes);
        else
            memset(mine, 0, bytes);
#pragma omp for schedule(static) nowait
        for (long i = 0; i < keys; i++)
            mine[sort->key[i]]++;
        for (long v = 1; v < values; v++)
            mine[v] += mine[v - 1];
#pragma omp barrier
        for (int other = 1; other < team; other++) {
            // Equal loops have equal static shares: each value stays with one thread.
#pragma omp for schedule(static) nowait
            for (long v = 0; v < values; v++)
                sort->counts[0][v] += sort->counts[other][v];
        }
    }
}

// Change two keys, rank all, and compare the ranks of the test keys.
static void iterate(struct suite *s, struct sort *sort, const struct test *tests, int iteration) {
    sort->key[iteration] = iteration;
    sort->key[iteration + ITERATIONS] = (int)sort->values - iteration;
    int tested[TESTS];
    for (int i = 0; i < TESTS; i++)
        tested[i] = sort->key[tests[i].place];
    rank_keys(sort);
    for (int i = 0; i < TESTS; i++) {
        int moved = iteration + tests[i].offset;
        suite_verify(s, "a rank", sort->counts[0][tested[i] - 1],
                     (double)(tests[i].rank + (tests[i].rises ? moved : -moved)), 0);
    }
}

// Sort the keys by their ranks, and verify the order. Overwrites the ranks. Each thread moves the
// keys of a range of values, so it reads all keys.
static void sort_keys(struct suite *s, struct sort *sort) {
    int *sorted = suite_memory(sizeof *sorted * (size_t)sort->keys), *ranks = sort->counts[0];
    long wrong = 0;
    uint64_t checksum = 0;
#pragma omp parallel
    {
        long team = omp_get_num_threads(), self = omp_get_thread_num();
        long first = sort->values * self / team, end = sort->values * (self + 1) / team;
        for (long i = 0; i < sort->keys; i++)
            if (sort->key[i] >= first && sort->key[i] < end)
                sorted[--ranks[sort->key[i]]] = sort->key[i];
    }
#pragma omp parallel for reduction(+ : wrong, checksum)
    for (long i = 0; i < sort->keys; i++) {
        wrong += i > 0 && sorted[i - 1] > sorted[i];
        checksum += (uint64_t)i * (uint64_t)sorted[i];
    }
    suite_verify(s, "the number of keys out of order", (double)wrong, 0, 0);
    suite_checksum(s, checksum);
    free(sorted);
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("npb/is", classes, argc, argv);
    const struct problem *problem = problems + s.class_index;
    static struct sort sort;
    sort.keys = 1L << problem->log_keys;
    sort.values = 1L << problem->log_values;
    sort.key = suite_memory(sizeof *sort.key * (size_t)sort.keys);
    do {
        make_keys(&sort);
        iterate(&s, &sort, problem->tests, 1); // warms up the caches; not timed
        suite_start(&s);
        for (int i = 1; i <= ITERATIONS; i++)
            iterate(&s, &sort, problem->tests, i);
        suite_stop(&s);
        sort_keys(&s, &sort);
        suite_count(&s, "regions", ITERATIONS);
        suite_count(&s, "barriers", (long)ITERATIONS * BARRIERS);
    } while (suite_next(&s));
    return suite_report(&s);
}
