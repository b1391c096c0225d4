/* SPDX-License-Identifier: MIT */
// NPB FT: solve a diffusion equation in a periodic box by Fourier transforms. A 3-D transform of
// random numbers goes to the frequency domain once. Each iteration advances time there, transforms
// back and takes a checksum of 1024 points. Specification: D. Bailey and others, "The NAS Parallel
// Benchmarks", NASA report RNR-94-007, 1994. Parallelization: H. Jin and others, "The OpenMP
// Implementation of NAS Parallel Benchmarks", NASA report NAS-99-011, 1999. The 1-D transforms are
// radix-2 without bit reversal (Stockham's algorithm), for 16 lines at a time.
//
// Synchronization: each kernel is a parallel region, whose static loop divides the planes of the
// box. The start takes 5 regions, and so does an iteration: evolve, one transform for each axis,
// and the checksum, which is a reduction. Class W has 32 planes along z, so at most 32 threads work
// in most of its regions.
//
// Difference: the transforms run once before the first round to fault the memory in, and not before
// each.
#include <omp.h>

#include "../suite.h"
#include "random.h"

enum { LINES = 16, MAX_EDGE = 512, MAX_ITERATIONS = 20, POINTS = 1024 };

struct cell {
    double re, im;
};

struct box {
    long n[3];    // points along x, y and z
    long step[3]; // distance of neighbours along each axis
    struct cell *frequencies, *values;
    double *decay;      // factor of each frequency per time step
    struct cell *roots; // exp(2 pi i k / MAX_EDGE), the upper half of the circle
    long regions;
};

// The published checksums.
static const struct cell sums_s[] = {
    {5.546087004964e2, 4.845363331978e2}, {5.546385409189e2, 4.865304269511e2},
    {5.546148406171e2, 4.883910722336e2}, {5.545423607415e2, 4.901273169046e2},
    {5.544255039624e2, 4.917475857993e2}, {5.542683411902e2, 4.932597244941e2}};
static const struct cell sums_w[] = {
    {5.673612178944e2, 5.293246849175e2}, {5.631436885271e2, 5.282149986629e2},
    {5.594024089970e2, 5.270996558037e2}, {5.560698047020e2, 5.260027904925e2},
    {5.530898991250e2, 5.249400845633e2}, {5.504159734538e2, 5.239212247086e2}};
static const struct cell sums_a[] = {
    {5.046735008193e2, 5.114047905510e2}, {5.059412319734e2, 5.098809666433e2},
    {5.069376896287e2, 5.098144042213e2}, {5.077892868474e2, 5.101336130759e2},
    {5.085233095391e2, 5.104914655194e2}, {5.091487099959e2, 5.107917842803e2}};
static const struct cell sums_b[] = {
    {5.177643571579e2, 5.077803458597e2}, {5.154521291263e2, 5.088249431599e2},
    {5.146409228649e2, 5.096208912659e2}, {5.142378756213e2, 5.101023387619e2},
    {5.139626667737e2, 5.103976610617e2}, {5.137423460082e2, 5.105948019802e2},
    {5.135547056878e2, 5.107404165783e2}, {5.133910925466e2, 5.108576573661e2},
    {5.132470705390e2, 5.109577278523e2}, {5.131197729984e2, 5.110460304483e2},
    {5.130070319283e2, 5.111252433800e2}, {5.129070537032e2, 5.111968077718e2},
    {5.128182883502e2, 5.112616233064e2}, {5.127393733383e2, 5.113203605551e2},
    {5.126691062020e2, 5.113735928093e2}, {5.126064276004e2, 5.114218460548e2},
    {5.125504076570e2, 5.114656139760e2}, {5.125002331720e2, 5.115053595966e2},
    {5.124551951846e2, 5.115415130407e2}, {5.124146770029e2, 5.115744692211e2}};

static void fill_roots(struct cell *roots) {
    for (int k = 0; k < MAX_EDGE / 2; k++) {
        double angle = 2 * M_PI * k / MAX_EDGE;
        roots[k] = (struct cell){cos(angle), sin(angle)};
    }
}

// Set the decay of each frequency: exp(-4 alpha pi^2 k^2), with k between -n/2 and n/2.
static void fill_decay(struct box *b) {
    const double alpha = 1e-6, factor = -4 * alpha * M_PI * M_PI;
    b->regions++;
#pragma omp parallel for
    for (long z = 0; z < b->n[2]; z++)
        for (long y = 0; y < b->n[1]; y++)
            for (long x = 0; x < b->n[0]; x++) {
                long point[3] = {x, y, z}, square = 0;
                for (int axis = 0; axis < 3; axis++) {
                    long n = b->n[axis], k = (point[axis] + n / 2) % n - n / 2;
                    square += k * k;
                }
                b->decay[z * b->step[2] + y * b->step[1] + x] = exp(factor * (double)square);
            }
}

// Set the initial values: random numbers in the order of memory, the real part first.
static void fill_values(struct box *b) {
    long numbers = 2 * b->n[0];
    b->regions++;
#pragma omp parallel for
    for (long z = 0; z < b->n[2]; z++) {
        double seed = 314159265;
        npb_random(&seed, npb_power(NPB_MULTIPLIER, z * b->n[1] * numbers));
        for (long y = 0; y < b->n[1]; y++)
            npb_random_fill(numbers, &seed, NPB_MULTIPLIER,
                            (double *)(b->values + z * b->step[2] + y * b->step[1]));
    }
}

// Do `count` butterflies with the same root: write the sums, and the differences times the root.
static void butterfly(long count, const struct cell *restrict left,
                      const struct cell *restrict right, struct cell root,
                      struct cell *restrict sum, struct cell *restrict difference) {
    for (long i = 0; i < count; i++) {
        struct cell a = left[i], b = right[i], d = {a.re - b.re, a.im - b.im};
        sum[i] = (struct cell){a.re + b.re, a.im + b.im};
        difference[i] =
            (struct cell){d.re * root.re - d.im * root.im, d.re * root.im + d.im * root.re};
    }
}

// Transform LINES lines of `n` points each. Points of the same index are adjacent. sign: the sign
// of the exponent, 1 or -1. Returns the buffer that has the result: `x` or `other`.
static struct cell *transform_lines(long n, int sign, const struct cell *roots, struct cell *x,
                                    struct cell *other) {
    long run = LINES;
    for (long half = n / 2; half >= 1; half /= 2, run *= 2) {
        for (long k = 0; k < half; k++) {
            struct cell root = roots[k * (MAX_EDGE / 2 / half)];
            root.im *= sign;
            butterfly(run, x + k * run, x + (k + half) * run, root, other + 2 * k * run,
                      other + (2 * k + 1) * run);
        }
        struct cell *swap = x;
        x = other;
        other = swap;
    }
    return x;
}

// Transform all lines along `axis`. `from` and `to` may be the same.
static void transform_axis(struct box *b, int axis, int sign, const struct cell *from,
                           struct cell *to) {
    int across = axis == 0, outer = axis == 2 ? 1 : 2; // axes of a block's lines, and of planes
    long n = b->n[axis], along = b->step[axis], aside = b->step[across];
    b->regions++;
#pragma omp parallel for
    for (long plane = 0; plane < b->n[outer]; plane++) {
        struct cell one[MAX_EDGE * LINES], two[MAX_EDGE * LINES];
        for (long line = 0; line < b->n[across]; line += LINES) {
            long start = plane * b->step[outer] + line * aside;
            for (long i = 0; i < n; i++)
                for (long j = 0; j < LINES; j++)
                    one[i * LINES + j] = from[start + i * along + j * aside];
            const struct cell *result = transform_lines(n, sign, b->roots, one, two);
            for (long i = 0; i < n; i++)
                for (long j = 0; j < LINES; j++)
                    to[start + i * along + j * aside] = result[i * LINES + j];
        }
    }
}

// Compute the initial values and transform them to frequencies.
static void start(struct box *b) {
    fill_decay(b);
    fill_values(b);
    fill_roots(b->roots);
    transform_axis(b, 0, 1, b->values, b->values);
    transform_axis(b, 1, 1, b->values, b->values);
    transform_axis(b, 2, 1, b->values, b->frequencies);
}

// Advance time by one step, and copy the frequencies to `values`.
static void evolve(struct box *b) {
    b->regions++;
#pragma omp parallel for
    for (long z = 0; z < b->n[2]; z++)
        for (long y = 0; y < b->n[1]; y++) {
            long line = z * b->step[2] + y * b->step[1];
            for (long i = line; i < line + b->n[0]; i++) {
                struct cell *f = &b->frequencies[i];
                *f = (struct cell){f->re * b->decay[i], f->im * b->decay[i]};
                b->values[i] = *f;
            }
        }
}

static struct cell checksum(struct box *b) {
    double re = 0, im = 0, points = (double)(b->n[0] * b->n[1] * b->n[2]);
    b->regions++;
#pragma omp parallel for reduction(+ : re, im)
    for (long j = 1; j <= POINTS; j++) {
        long x = j % b->n[0], y = 3 * j % b->n[1], z = 5 * j % b->n[2];
        struct cell value = b->values[z * b->step[2] + y * b->step[1] + x];
        re += value.re;
        im += value.im;
    }
    return (struct cell){re / points, im / points};
}

// Allocate memory zeroed by the kernel: a page is on the NUMA node of the thread that first writes
// it.
static void *box_memory(long cells, size_t size) {
    void *p = calloc((size_t)cells, size);
    if (!p)
        fail("no memory for %ld cells", cells);
    return p;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"S", "W", "A", "B", NULL};
    static const struct class {
        long n[3];
        int iterations;
        const struct cell *sums;
    } classes[] = {{{64, 64, 64}, 6, sums_s},
                   {{128, 128, 32}, 6, sums_w},
                   {{256, 256, 128}, 6, sums_a},
                   {{512, 256, 256}, 20, sums_b}};
    struct suite s = suite_parse("npb/ft", names, argc, argv);
    const struct class *class = &classes[s.class_index];
    const long *n = class->n;
    long pitch = n[0] + 1; // lines at distances of a power of two compete for cache sets
    long cells = pitch * n[1] * n[2];
    struct box b = {.n = {n[0], n[1], n[2]},
                    .step = {1, pitch, pitch * n[1]},
                    .frequencies = box_memory(cells, sizeof *b.frequencies),
                    .values = box_memory(cells, sizeof *b.values),
                    .decay = box_memory(cells, sizeof *b.decay),
                    .roots = box_memory(MAX_EDGE / 2, sizeof *b.roots)};
    start(&b);
    do {
        struct cell sums[MAX_ITERATIONS];
        b.regions = 0;
        suite_start(&s);
        start(&b);
        for (int i = 0; i < class->iterations; i++) {
            evolve(&b);
            for (int axis = 2; axis >= 0; axis--)
                transform_axis(&b, axis, -1, b.values, b.values);
            sums[i] = checksum(&b);
        }
        suite_stop(&s);
        for (int i = 0; i < class->iterations; i++) {
            suite_verify(&s, "a sum's real part", sums[i].re, class->sums[i].re, 1e-12);
            suite_verify(&s, "a sum's imaginary part", sums[i].im, class->sums[i].im, 1e-12);
        }
        suite_count(&s, "regions", b.regions);
        suite_count(&s, "barriers", b.regions);
    } while (suite_next(&s));
    free(b.frequencies);
    free(b.values);
    free(b.decay);
    free(b.roots);
    return suite_report(&s);
}
