/* SPDX-License-Identifier: MIT */
// Conjugate gradients on a sparse symmetric matrix, as CG of the NAS Parallel Benchmarks: many
// short parallel loops, with a barrier after each. Rows have different lengths, so the loop over
// the matrix is guided; loops over vectors are static. --size: rows.
#include <math.h>
#include <omp.h>

#include "mix.h"

enum { ITERATIONS = 25, BLOCK = 512, MOST = 24 };
static struct mix mix;
static long n, blocks;
static long *first; // index of each row's first element
static int *column;
static double *value;
static double *x, *r, *p, *q, *partial;

// Row i may be connected to i +- each distance, so the matrix is symmetric; the diagonal dominates
// it.
static const long distance[] = {1, 2, 3, 5, 17, 129, 1031, 5003, 9973, 20011, 40009};
enum { DISTANCES = sizeof distance / sizeof *distance };

// Return whether rows `low` and low + distance[k] are connected.
static int connected(long low, int k) {
    return low >= 0 && low + distance[k] < n &&
           mix_random(7, (uint64_t)(low * DISTANCES + k)) % 4 != 0;
}

static void make_matrix(void) {
    first = mix_memory(sizeof *first * (size_t)(n + 1));
    column = mix_memory(sizeof *column * (size_t)n * MOST);
    value = mix_memory(sizeof *value * (size_t)n * MOST);
    long at = 0;
    for (long i = 0; i < n; i++) {
        first[i] = at;
        column[at] = (int)i;
        value[at++] = 2 * DISTANCES + 0.5;
        for (int k = 0; k < DISTANCES; k++) {
            if (connected(i - distance[k], k)) {
                column[at] = (int)(i - distance[k]);
                value[at++] = -mix_uniform(8, (uint64_t)((i - distance[k]) * DISTANCES + k));
            }
            if (connected(i, k)) {
                column[at] = (int)(i + distance[k]);
                value[at++] = -mix_uniform(8, (uint64_t)(i * DISTANCES + k));
            }
        }
    }
    first[n] = at;
}

// Return the dot product. Pre: called by all threads of a parallel region. Blocks are summed up in
// order, so the result does not depend on the number of threads.
static double dot(const double *a, const double *b) {
#pragma omp for schedule(static)
    for (long block = 0; block < blocks; block++) {
        long end = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
        double sum = 0;
        for (long i = block * BLOCK; i < end; i++)
            sum += a[i] * b[i];
        partial[block] = sum;
    }
    double sum = 0;
    for (long block = 0; block < blocks; block++)
        sum += partial[block];
#pragma omp barrier
    return sum;
}

static uint64_t round_of_cg(void) {
    double start = 0, rest = 0;
#pragma omp parallel num_threads(mix.threads)
    {
#pragma omp for schedule(static)
        for (long i = 0; i < n; i++) {
            x[i] = 0;
            r[i] = p[i] = mix_uniform(9, (uint64_t)i);
        }
        double rho = dot(r, r);
        double begun = rho;
        for (int iteration = 0; iteration < ITERATIONS; iteration++) {
#pragma omp for schedule(guided, 64)
            for (long i = 0; i < n; i++) {
                double sum = 0;
                for (long k = first[i]; k < first[i + 1]; k++)
                    sum += value[k] * p[column[k]];
                q[i] = sum;
            }
            double alpha = rho / dot(p, q);
#pragma omp for schedule(static)
            for (long i = 0; i < n; i++) {
                x[i] += alpha * p[i];
                r[i] -= alpha * q[i];
            }
            double next = dot(r, r), beta = next / rho;
            rho = next;
#pragma omp for schedule(static)
            for (long i = 0; i < n; i++)
                p[i] = r[i] + beta * p[i];
        }
#pragma omp single
        {
            start = begun;
            rest = rho;
        }
    }
    if (!(rest < start * 1e-6))
        fail("cg: the residual went from %g to %g only", start, rest);
    return mix_hash(0, x, sizeof *x * (size_t)n);
}

int main(int argc, char **argv) {
    mix = mix_parse("cg", 60000, 10, argc, argv);
    n = mix.size;
    blocks = (n + BLOCK - 1) / BLOCK;
    make_matrix();
    double **vectors[] = {&x, &r, &p, &q};
    for (int i = 0; i < 4; i++)
        *vectors[i] = mix_memory(sizeof **vectors[i] * (size_t)n);
    partial = mix_memory(sizeof *partial * (size_t)blocks);
    return mix_run(&mix, round_of_cg);
}
