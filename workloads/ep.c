/* SPDX-License-Identifier: MIT */
// Embarrassingly parallel, as EP of the NAS Parallel Benchmarks: pairs of normally distributed
// numbers by Marsaglia's polar method, counted by their size. The loop hands out one block of pairs
// at a time. --size: thousands of pairs.
#include <math.h>
#include <omp.h>

#include "mix.h"

enum { PAIRS = 1000, BINS = 10 };
static struct mix mix;
static double (*sums)[2]; // of each block; added up in order

static uint64_t round_of_ep(void) {
    long counts[BINS] = {0};
#pragma omp parallel for schedule(dynamic) reduction(+ : counts) num_threads(mix.threads)
    for (long block = 0; block < mix.size; block++) {
        double sx = 0, sy = 0;
        for (uint64_t i = 0; i < PAIRS; i++) {
            double x = 2 * mix_uniform((uint64_t)block, 2 * i) - 1,
                   y = 2 * mix_uniform((uint64_t)block, 2 * i + 1) - 1;
            double t = x * x + y * y;
            if (t > 1 || t == 0)
                continue;
            double factor = sqrt(-2 * log(t) / t);
            x *= factor;
            y *= factor;
            double size = fmax(fabs(x), fabs(y));
            counts[size < BINS - 1 ? (int)size : BINS - 1]++;
            sx += x;
            sy += y;
        }
        sums[block][0] = sx;
        sums[block][1] = sy;
    }
    double total[2] = {0, 0};
    for (long block = 0; block < mix.size; block++) {
        total[0] += sums[block][0];
        total[1] += sums[block][1];
    }
    // About pi / 4 of all pairs are inside the circle.
    long inside = 0;
    for (int i = 0; i < BINS; i++)
        inside += counts[i];
    double part = (double)inside / (double)(mix.size * PAIRS);
    if (mix.size >= 100 && fabs(part - 0.785398) > 0.01)
        fail("ep: %.4f of all pairs are inside of the circle", part);
    return mix_hash(mix_hash(0, counts, sizeof counts), total, sizeof total);
}

int main(int argc, char **argv) {
    mix = mix_parse("ep", 10000, 5, argc, argv);
    sums = mix_memory(sizeof *sums * (size_t)mix.size);
    return mix_run(&mix, round_of_ep);
}
