/* SPDX-License-Identifier: MIT */
// EP: turn pairs of uniform random numbers into normally distributed pairs by Marsaglia's polar
// method, sum them, and count them by size. Specification: NAS report RNR-94-007 (Bailey, Barszcz
// et al., 1994). OpenMP structure: NAS-99-011 (Jin, Frumkin, Yan, 1999) and NPB 3.
//
// Synchronization: 1 parallel region in all. The team divides a static loop over batches of 2^16
// pairs; each thread jumps ahead to the random numbers of each batch. At the end, threads reduce
// the sums, add their 10 counts atomically, and join. The loop is balanced: threads wait once, for
// the slowest.
//
// Difference from NPB: the numbers of pairs inside the circle are verified too.
#include <omp.h>

#include "../suite.h"
#include "random.h"

enum {
    LOG_PAIRS = 16, // log2 of the pairs of a batch
    PAIRS = 1 << LOG_PAIRS,
    SIZES = 10,
};
static const double seed_of_all = 271828183;

struct problem {
    int log_pairs; // log2 of all pairs
    double sum_x, sum_y;
    long inside;
};
static const char *const classes[] = {"S", "W", "A", "B", NULL};
static const struct problem problems[] = {
    {24, -3.247834652034740e3, -6.958407078382297e3, 13176389},
    {25, -2.863319731645753e3, -6.320053679109499e3, 26354769},
    {28, -4.295875165629892e3, -1.580732573678431e4, 210832767},
    {30, 4.033815542441498e4, -2.660669192809235e4, 843345606},
};

struct result {
    double sum_x, sum_y;
    long counts[SIZES]; // number of pairs whose larger absolute value is from i to i + 1
};

// Add the normally distributed pairs from one batch of uniform numbers to *result.
static void add_batch(const double *uniform, struct result *result) {
    for (int i = 0; i < PAIRS; i++) {
        double x = 2 * uniform[2 * i] - 1, y = 2 * uniform[2 * i + 1] - 1;
        double square = x * x + y * y;
        if (square > 1)
            continue;
        double factor = sqrt(-2 * log(square) / square);
        x *= factor;
        y *= factor;
        result->counts[(int)fmax(fabs(x), fabs(y))]++;
        result->sum_x += x;
        result->sum_y += y;
    }
}

// Returns the calling thread's buffer for the numbers of a batch.
static double *thread_buffer(void) {
    static _Thread_local double *buffer;
    if (!buffer)
        buffer = suite_memory(sizeof *buffer * 2 * PAIRS);
    return buffer;
}

static struct result solve(long batches) {
    double sum_x = 0, sum_y = 0;
    struct result all = {0};
#pragma omp parallel
    {
        double *uniform = thread_buffer();
        struct result mine = {0};
#pragma omp for reduction(+ : sum_x, sum_y) nowait
        for (long batch = 0; batch < batches; batch++) {
            double seed = seed_of_all;
            npb_random(&seed, npb_power(NPB_MULTIPLIER, batch * 2 * PAIRS));
            npb_random_fill(2 * PAIRS, &seed, NPB_MULTIPLIER, uniform);
            struct result one = {0};
            add_batch(uniform, &one);
            sum_x += one.sum_x;
            sum_y += one.sum_y;
            for (int i = 0; i < SIZES; i++)
                mine.counts[i] += one.counts[i];
        }
        for (int i = 0; i < SIZES; i++) {
#pragma omp atomic
            all.counts[i] += mine.counts[i];
        }
    }
    all.sum_x = sum_x;
    all.sum_y = sum_y;
    return all;
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("npb/ep", classes, argc, argv);
    const struct problem *problem = problems + s.class_index;
    do {
#pragma omp parallel
        thread_buffer(); // faults the buffers in; not timed
        suite_start(&s);
        struct result result = solve(1L << (problem->log_pairs - LOG_PAIRS));
        suite_stop(&s);
        long inside = 0;
        for (int i = 0; i < SIZES; i++)
            inside += result.counts[i];
        suite_verify(&s, "the sum of x", result.sum_x, problem->sum_x, 1e-8);
        suite_verify(&s, "the sum of y", result.sum_y, problem->sum_y, 1e-8);
        suite_verify(&s, "the number of pairs inside", (double)inside, (double)problem->inside, 0);
        suite_checksum(&s, suite_hash(0, result.counts, sizeof result.counts));
        suite_count(&s, "regions", 1);
        suite_count(&s, "barriers", 1);
    } while (suite_next(&s));
    return suite_report(&s);
}
