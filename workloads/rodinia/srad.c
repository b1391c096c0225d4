/* SPDX-License-Identifier: MIT */
// Speckle reducing anisotropic diffusion (SRAD) of a generated ultrasound image.
//
// Specification: Yu and Acton, "Speckle Reducing Anisotropic Diffusion", IEEE Trans. Image
// Processing 11(11), 2002, equations 31 to 36 and 58 to 61; version 2 in Che et al., "Rodinia",
// IISWC 2009: 5-point differences on a grid, speckle measured in a region of interest.
//
// Threads: two parallel loops over rows in each iteration (diffusion coefficients, the update), so
// two barriers. Before them one thread computes the statistics of the region of interest. One
// thread also takes the exponential of the image first, and its logarithm last.
//
// Differences: the image is generated (a tissue with two cysts, and speckle of several looks).
// There are 20 to 170 iterations; the original takes their number as an argument.
#include <omp.h>

#include "../suite.h"
#include "noise.h"

enum { SEQUENCE_SPECKLE = 16, LOOKS = 4, LOOPS_AN_ITERATION = 2 };

static const float rate = 0.5f; // lambda: part of the flow that one iteration moves

struct image {
    long rows, columns;
    long region;       // the region of interest: rows and columns from the corner
    const float *echo; // the scanner's output: the logarithm of the level
    float *level;
    float *north, *south, *west, *east; // differences to the neighbors
    float *diffusion;
};

struct statistics {
    double mean, variance;
};

// Return the tissue's echo without speckle. The region of interest is homogeneous.
static double tissue(const struct image *image, long row, long column) {
    double y = (double)row / (double)image->rows, x = (double)column / (double)image->columns;
    if (hypot(y - 0.35, x - 0.7) < 0.15)
        return 0.2;
    if (hypot(y - 0.7, x - 0.35) < 0.2)
        return 0.9;
    return 0.5;
}

// Generate the tissue with speckle: amplitude of exponential power, a mean of looks.
static void make_echo(const struct image *image, float *echo) {
    for (long i = 0; i < image->rows * image->columns; i++) {
        double power = 0;
        for (int look = 0; look < LOOKS; look++)
            power -= log(noise_uniform(SEQUENCE_SPECKLE, (uint64_t)(i * LOOKS + look))) / LOOKS;
        echo[i] = (float)(tissue(image, i / image->columns, i % image->columns) * sqrt(power));
    }
}

static void expand(const struct image *image) {
    for (long i = 0; i < image->rows * image->columns; i++)
        image->level[i] = expf(image->echo[i]);
}

static void compress(const struct image *image) {
    for (long i = 0; i < image->rows * image->columns; i++)
        image->level[i] = logf(image->level[i]);
}

static struct statistics region_statistics(const struct image *image) {
    double sum = 0, squares = 0, count = (double)(image->region * image->region);
    for (long row = 0; row < image->region; row++)
        for (long column = 0; column < image->region; column++) {
            double level = image->level[row * image->columns + column];
            sum += level;
            squares += level * level;
        }
    double mean = sum / count;
    return (struct statistics){mean, squares / count - mean * mean};
}

// Return the diffusion coefficient: from 0, at an edge, to 1, in homogeneous tissue. gradient: its
// square, relative to the level; laplacian: relative to the level; speckle: squared coefficient of
// variation of homogeneous tissue.
static float coefficient(float gradient, float laplacian, float speckle) {
    float deviation = 1 + 0.25f * laplacian;
    float variation = (0.5f * gradient - 0.0625f * laplacian * laplacian) / (deviation * deviation);
    float c = 1 / (1 + (variation - speckle) / (speckle * (1 + speckle)));
    return c < 0 ? 0 : c > 1 ? 1 : c;
}

static void diffuse(const struct image *image) {
    long rows = image->rows, columns = image->columns;
    struct statistics region = region_statistics(image);
    float speckle = (float)(region.variance / (region.mean * region.mean));
#pragma omp parallel for
    for (long row = 0; row < rows; row++) {
        const float *here = image->level + row * columns;
        const float *up = row > 0 ? here - columns : here;
        const float *down = row < rows - 1 ? here + columns : here;
        for (long column = 0; column < columns; column++) {
            long i = row * columns + column;
            float level = here[column];
            float north = up[column] - level, south = down[column] - level;
            float west = here[column > 0 ? column - 1 : 0] - level;
            float east = here[column < columns - 1 ? column + 1 : column] - level;
            float squares = north * north + south * south + west * west + east * east;
            image->diffusion[i] = coefficient(squares / (level * level),
                                              (north + south + west + east) / level, speckle);
            image->north[i] = north;
            image->south[i] = south;
            image->west[i] = west;
            image->east[i] = east;
        }
    }
#pragma omp parallel for
    for (long row = 0; row < rows; row++) {
        const float *here = image->diffusion + row * columns;
        const float *down = row < rows - 1 ? here + columns : here;
        for (long column = 0; column < columns; column++) {
            long i = row * columns + column;
            float east = here[column < columns - 1 ? column + 1 : column];
            float flow = here[column] * (image->north[i] + image->west[i]) +
                         down[column] * image->south[i] + east * image->east[i];
            image->level[i] += 0.25f * rate * flow;
        }
    }
}

// Return the mean difference of level between the brighter and the darker cyst.
static double contrast(const struct image *image) {
    double sum[2] = {0}, count[2] = {0};
    for (long row = 0; row < image->rows; row++)
        for (long column = 0; column < image->columns; column++) {
            double echo = tissue(image, row, column);
            if (echo == 0.5)
                continue;
            sum[echo > 0.5] += image->level[row * image->columns + column];
            count[echo > 0.5]++;
        }
    return sum[1] / count[1] - sum[0] / count[0];
}

// The speckle's variance must have become much smaller, and the cysts must still differ.
static void check(const struct image *image, struct statistics before, double contrast_before) {
    struct statistics after = region_statistics(image);
    if (!(after.variance < 0.2 * before.variance))
        fail("srad: the variance of speckle went from %g to %g", before.variance, after.variance);
    double kept = contrast(image) / contrast_before;
    if (!(kept > 0.8 && kept < 1.2))
        fail("srad: %.2f of the contrast is left", kept);
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct {
        long size, region, iterations;
    } problems[] = {{128, 32, 20}, {512, 64, 150}, {1024, 128, 170}, {2048, 128, 120}};
    struct suite s = suite_parse("rodinia/srad", classes, argc, argv);
    long size = problems[s.class_index].size, iterations = problems[s.class_index].iterations;
    size_t bytes = sizeof(float) * (size_t)size * (size_t)size;
    struct image image = {.rows = size, .columns = size, problems[s.class_index].region};
    float **arrays[] = {&image.level, &image.north, &image.south,
                        &image.west,  &image.east,  &image.diffusion};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = suite_memory(bytes);
    float *echo = suite_memory(bytes);
    make_echo(&image, echo);
    image.echo = echo;
    expand(&image);
    compress(&image);
    struct statistics before = region_statistics(&image);
    double contrast_before = contrast(&image);
    do {
        suite_start(&s);
        expand(&image);
        for (long i = 0; i < iterations; i++)
            diffuse(&image);
        compress(&image);
        suite_stop(&s);
        check(&image, before, contrast_before);
        suite_checksum(&s, suite_hash(0, image.level, bytes));
        suite_count(&s, "barriers", LOOPS_AN_ITERATION * iterations);
    } while (suite_next(&s));
    return suite_report(&s);
}
