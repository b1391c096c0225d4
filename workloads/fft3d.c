/* SPDX-License-Identifier: MIT */
// A wave in a cube, by FFTW with threads. One thread makes the field, all transform it, one
// advances each wave, all transform it back, and one computes the energy. Not malleable: FFTW's
// plan fixes the threads. --size: the cube's edge.
#include <fftw3.h>
#include <math.h>

#include "mix.h"

static struct mix mix;
static fftw_complex *field;
static fftw_plan there, back;

static uint64_t round_of_waves(void) {
    long n = mix.size, points = n * n * n;
    double before = 0, after = 0;
    for (long i = 0; i < points; i++) {
        field[i][0] = mix_uniform(31, (uint64_t)i) - 0.5;
        field[i][1] = 0;
        before += field[i][0] * field[i][0];
    }
    fftw_execute(there);
    for (long i = 0; i < points; i++) {
        // Multiply by a phase, and by the factor that the transforms leave out: the energy stays
        // the same.
        double angle = 1e-3 * (double)(i % n + i / n % n + i / n / n);
        double c = cos(angle) / (double)points, s = sin(angle) / (double)points;
        double re = field[i][0] * c - field[i][1] * s, im = field[i][0] * s + field[i][1] * c;
        field[i][0] = re;
        field[i][1] = im;
    }
    fftw_execute(back);
    uint64_t hash = 0;
    for (long i = 0; i < points; i++) {
        after += field[i][0] * field[i][0] + field[i][1] * field[i][1];
        // Round: plans for different numbers of threads add up in different orders.
        if (i % 64 == 0) {
            long rounded = lround(field[i][0] * 1e6 + 0.25);
            hash = mix_hash(hash, &rounded, sizeof rounded);
        }
    }
    if (!(fabs(after - before) < 1e-9 * before))
        fail("fft3d: the energy went from %.12g to %.12g", before, after);
    return hash;
}

int main(int argc, char **argv) {
    mix = mix_parse("fft3d", 96, 10, argc, argv);
    int n = (int)mix.size;
    field = fftw_malloc(sizeof *field * (size_t)n * (size_t)n * (size_t)n);
    if (!field || !fftw_init_threads())
        fail("FFTW cannot be set up");
    fftw_plan_with_nthreads((int)mix.threads);
    there = fftw_plan_dft_3d(n, n, n, field, field, FFTW_FORWARD, FFTW_ESTIMATE);
    back = fftw_plan_dft_3d(n, n, n, field, field, FFTW_BACKWARD, FFTW_ESTIMATE);
    if (!there || !back)
        fail("FFTW has no plan");
    return mix_run(&mix, round_of_waves);
}
