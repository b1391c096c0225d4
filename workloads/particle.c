/* SPDX-License-Identifier: MIT */
// A particle filter, as that of Rodinia: follows an object through noisy measurements. Each frame
// moves and weighs the particles in parallel, adds their weights up in one thread, and draws new
// ones in parallel. --size: particles.
#include <math.h>
#include <omp.h>

#include "mix.h"

enum { FRAMES = 30, POINTS = 24, CHUNK = 64 };
static struct mix mix;
static double *x, *y, *old_x, *old_y, *weight, *sum;

static double normal(uint64_t seed, uint64_t i) {
    return sqrt(-2 * log(1 - mix_uniform(seed, 2 * i))) *
           cos(6.283185307179586 * mix_uniform(seed, 2 * i + 1));
}

// Of frame `frame`: on a spiral.
static double true_x(int frame) { return (5 + 0.3 * frame) * cos(0.2 * frame); }
static double true_y(int frame) { return (5 + 0.3 * frame) * sin(0.2 * frame); }

// How well a place fits to the measurements around the true one. Particles that are far away are
// given up early: the work is uneven.
static double likelihood(int frame, double px, double py) {
    double fit = 0;
    for (int i = 0; i < POINTS && fit > -50; i++) {
        double mx = true_x(frame) + 0.5 * normal(100 + (uint64_t)frame, (uint64_t)i);
        double my = true_y(frame) + 0.5 * normal(200 + (uint64_t)frame, (uint64_t)i);
        fit -= ((px - mx) * (px - mx) + (py - my) * (py - my)) / 8;
    }
    return exp(fit);
}

// The first particle whose sum of weights reaches `u`.
static long find(double u) {
    long low = 0, high = mix.size - 1;
    while (low < high) {
        long middle = (low + high) / 2;
        if (sum[middle] < u)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t round_of_particles(void) {
    uint64_t hash = 0;
    long n = mix.size;
    for (long i = 0; i < n; i++) {
        x[i] = true_x(0);
        y[i] = true_y(0);
    }
    for (int frame = 1; frame <= FRAMES; frame++) {
#pragma omp parallel for schedule(dynamic, CHUNK) num_threads(mix.threads)
        for (long i = 0; i < n; i++) {
            uint64_t number = (uint64_t)(frame * n + i);
            x[i] += true_x(frame) - true_x(frame - 1) + normal(1, number);
            y[i] += true_y(frame) - true_y(frame - 1) + normal(2, number);
            weight[i] = likelihood(frame, x[i], y[i]);
        }
        double total = 0, mean[2] = {0, 0};
        for (long i = 0; i < n; i++) {
            sum[i] = total += weight[i];
            mean[0] += weight[i] * x[i];
            mean[1] += weight[i] * y[i];
        }
        mean[0] /= total;
        mean[1] /= total;
        hash = mix_hash(hash, mean, sizeof mean);
        if (!(hypot(mean[0] - true_x(frame), mean[1] - true_y(frame)) < 2))
            fail("particle: in frame %d the object is at %g, %g and seen at %g, %g", frame,
                 true_x(frame), true_y(frame), mean[0], mean[1]);
        double *swap = old_x;
        old_x = x;
        x = swap;
        swap = old_y;
        old_y = y;
        y = swap;
        double start = mix_uniform(3, (uint64_t)frame);
#pragma omp parallel for schedule(guided, CHUNK) num_threads(mix.threads)
        for (long i = 0; i < n; i++) {
            long from = find(((double)i + start) / (double)n * total);
            x[i] = old_x[from];
            y[i] = old_y[from];
        }
    }
    return hash;
}

int main(int argc, char **argv) {
    mix = mix_parse("particle", 20000, 5, argc, argv);
    double **all[] = {&x, &y, &old_x, &old_y, &weight, &sum};
    for (int i = 0; i < 6; i++)
        *all[i] = mix_memory(sizeof(double) * (size_t)mix.size);
    return mix_run(&mix, round_of_particles);
}
