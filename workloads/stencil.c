/* SPDX-License-Identifier: MIT */
// Heat in a cube: each point becomes the mean of its six neighbours and itself, again and again.
// The loop over planes is guided. --size: the cube's edge.
#include <omp.h>

#include "mix.h"

enum { STEPS = 20 };
static struct mix mix;
static double *now_field, *next_field;

static uint64_t round_of_heat(void) {
    long n = mix.size + 2; // with the walls
    double *a = now_field, *b = next_field;
    double before = 0, after = 0;
    for (long i = 0; i < n * n * n; i++)
        a[i] = b[i] = 0;
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++)
            for (long k = 1; k < n - 1; k++)
                a[(i * n + j) * n + k] = mix_uniform(5, (uint64_t)((i * n + j) * n + k)),
                                    before += a[(i * n + j) * n + k];
#pragma omp parallel num_threads(mix.threads)
    for (int step = 0; step < STEPS; step++) {
        const double *from = step % 2 ? b : a;
        double *to = step % 2 ? a : b;
#pragma omp for schedule(guided)
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                for (long k = 1; k < n - 1; k++) {
                    const double *p = from + (i * n + j) * n + k;
                    to[(i * n + j) * n + k] =
                        (p[0] + p[-1] + p[1] + p[-n] + p[n] + p[-n * n] + p[n * n]) / 7;
                }
    }
    const double *last = STEPS % 2 ? b : a;
    for (long i = 0; i < n * n * n; i++)
        after += last[i];
    if (!(after > 0 && after < before))
        fail("stencil: the heat went from %g to %g", before, after);
    return mix_hash(0, last, sizeof *last * (size_t)(n * n * n));
}

int main(int argc, char **argv) {
    mix = mix_parse("stencil", 100, 10, argc, argv);
    size_t points = (size_t)(mix.size + 2) * (size_t)(mix.size + 2) * (size_t)(mix.size + 2);
    now_field = mix_memory(sizeof *now_field * points);
    next_field = mix_memory(sizeof *next_field * points);
    return mix_run(&mix, round_of_heat);
}
