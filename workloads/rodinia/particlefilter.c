/* SPDX-License-Identifier: MIT */
// A particle filter (sampling importance resampling) that follows a disk through a noisy video.
//
// Specification: Goodrum, Trotter, Aksel, Acton, Skadron, "Parallelization of Particle Filter
// Algorithms", EAMA 2010; Che et al., "Rodinia", IISWC 2009; the filter of Arulampalam et al., "A
// Tutorial on Particle Filters", IEEE Trans. Signal Processing 50(2), 2002.
//
// Threads: 2 parallel loops at first, then 8 in each frame but the first; each ends with a barrier.
// Two of the 8 have a reduction. One thread makes the video, sums up the weights into a
// distribution, and copies the resampled particles, while the others are idle. Resampling searches
// the distribution from its start, so threads with later particles work longer.
//
// Differences: the reductions add fixed-point numbers, so that sums do not depend on the order.
// Weights are relative to a perfect match, which keeps them in that range. Random numbers depend on
// frame and particle, not on a state of each particle. The video is part of the timed section.
#include <omp.h>

#include "../suite.h"
#include "noise.h"

enum { RADIUS = 5, DISK_MAX = 4 * RADIUS * RADIUS, INSIDE = 228, OUTSIDE = 100 };
enum { LOOPS_BEFORE = 2, LOOPS_A_FRAME = 8 };
enum { SEQUENCE_VIDEO = 1, SEQUENCE_X, SEQUENCE_Y, SEQUENCE_OFFSET };

// The object's step from frame to frame, and the deviation that the filter assumes.
static const double step_x = 1, step_y = -2, spread_x = 5, spread_y = 2;

static const double weight_one = 0x1p30, place_one = 0x1p40; // units of the fixed-point numbers
static const double weight_most = 0x1p16;

struct video {
    int width, height, frames;
    uint8_t *pixels; // frame, row, column
};

struct disk {
    int count;
    int x[DISK_MAX], y[DISK_MAX]; // relative to the center
};

struct particles {
    long count;
    double *x, *y, *next_x, *next_y, *score, *weight, *sum_to, *mark;
};

struct place {
    int64_t x, y; // in units of 1 / place_one
};

static struct disk make_disk(void) {
    struct disk disk = {0};
    for (int y = -RADIUS + 1; y < RADIUS; y++)
        for (int x = -RADIUS + 1; x < RADIUS; x++)
            if (x * x + y * y < RADIUS * RADIUS) {
                disk.x[disk.count] = x;
                disk.y[disk.count++] = y;
            }
    return disk;
}

static double true_x(const struct video *v, int frame) { return v->width / 2 + step_x * frame; }
static double true_y(const struct video *v, int frame) { return v->height / 2 + step_y * frame; }

static void make_video(struct video *v, const struct disk *disk) {
    size_t size = (size_t)v->width * (size_t)v->height;
    for (int frame = 0; frame < v->frames; frame++) {
        uint8_t *pixel = v->pixels + size * (size_t)frame;
        memset(pixel, OUTSIDE, size);
        for (int i = 0; i < disk->count; i++) {
            int x = (int)true_x(v, frame) + disk->x[i], y = (int)true_y(v, frame) + disk->y[i];
            pixel[y * v->width + x] = INSIDE;
        }
        for (size_t i = 0; i < size; i++)
            pixel[i] =
                noise_pixel(pixel[i] + 5 * noise_normal(SEQUENCE_VIDEO, size * (size_t)frame + i));
    }
}

// Return the log likelihood ratio of the disk at this place. Pixels outside the frame count as
// background.
static double likelihood(const struct video *v, const struct disk *disk, int frame, double px,
                         double py) {
    const uint8_t *pixel = v->pixels + (size_t)v->width * (size_t)v->height * (size_t)frame;
    double sum = 0;
    for (int i = 0; i < disk->count; i++) {
        int x = (int)lround(px) + disk->x[i], y = (int)lround(py) + disk->y[i];
        int outside = x < 0 || y < 0 || x >= v->width || y >= v->height;
        double level = outside ? OUTSIDE : pixel[y * v->width + x];
        double from_outside = level - OUTSIDE, from_inside = level - INSIDE;
        sum += (from_outside * from_outside - from_inside * from_inside) / 50;
    }
    return sum / disk->count;
}

static void begin(struct particles *p, const struct video *v) {
    double x = true_x(v, 0), y = true_y(v, 0);
#pragma omp parallel for
    for (long i = 0; i < p->count; i++)
        p->weight[i] = 1 / (double)p->count;
#pragma omp parallel for
    for (long i = 0; i < p->count; i++) {
        p->x[i] = x;
        p->y[i] = y;
    }
}

// Move the particles and weigh them by the frame.
static void weigh(struct particles *p, const struct video *v, const struct disk *disk, int frame) {
    const double perfect = (INSIDE - OUTSIDE) * (INSIDE - OUTSIDE) / 50.0;
    uint64_t first = (uint64_t)frame * (uint64_t)p->count;
    int64_t total = 0;
#pragma omp parallel for
    for (long i = 0; i < p->count; i++) {
        p->x[i] += step_x + spread_x * noise_normal(SEQUENCE_X, first + (uint64_t)i);
        p->y[i] += step_y + spread_y * noise_normal(SEQUENCE_Y, first + (uint64_t)i);
    }
#pragma omp parallel for
    for (long i = 0; i < p->count; i++)
        p->score[i] = likelihood(v, disk, frame, p->x[i], p->y[i]);
#pragma omp parallel for
    for (long i = 0; i < p->count; i++)
        p->weight[i] *= (double)p->count * fmin(exp(p->score[i] - perfect), weight_most);
#pragma omp parallel for reduction(+ : total)
    for (long i = 0; i < p->count; i++)
        total += (int64_t)(p->weight[i] * weight_one);
    if (!total)
        fail("particlefilter: no particle is near the object in frame %d", frame);
#pragma omp parallel for
    for (long i = 0; i < p->count; i++)
        p->weight[i] /= (double)total / weight_one;
}

static struct place estimate(const struct particles *p) {
    int64_t x = 0, y = 0;
#pragma omp parallel for reduction(+ : x, y)
    for (long i = 0; i < p->count; i++) {
        x += (int64_t)(p->x[i] * p->weight[i] * place_one);
        y += (int64_t)(p->y[i] * p->weight[i] * place_one);
    }
    return (struct place){x, y};
}

// Return the first particle whose distribution reaches `mark`. Linear, as the original.
static long search(const struct particles *p, double mark) {
    long i = 0;
    while (i < p->count - 1 && p->sum_to[i] < mark)
        i++;
    return i;
}

// Draw as many particles as before, in proportion to their weights (systematic resampling).
static void resample(struct particles *p, int frame) {
    double share = 1 / (double)p->count, sum = 0;
    for (long i = 0; i < p->count; i++)
        p->sum_to[i] = sum += p->weight[i];
    double offset = share * noise_uniform(SEQUENCE_OFFSET, (uint64_t)frame);
#pragma omp parallel for
    for (long i = 0; i < p->count; i++)
        p->mark[i] = offset + (double)i * share;
#pragma omp parallel for
    for (long i = 0; i < p->count; i++) {
        long from = search(p, p->mark[i]);
        p->next_x[i] = p->x[from];
        p->next_y[i] = p->y[from];
    }
    for (long i = 0; i < p->count; i++) {
        p->x[i] = p->next_x[i];
        p->y[i] = p->next_y[i];
        p->weight[i] = share;
    }
}

static void check(const struct video *v, const struct place *found) {
    for (int frame = 1; frame < v->frames; frame++) {
        double x = (double)found[frame].x / place_one - true_x(v, frame);
        double y = (double)found[frame].y / place_one - true_y(v, frame);
        if (!(hypot(x, y) < 2))
            fail("particlefilter: frame %d: the object is %.2f pixels off", frame, hypot(x, y));
    }
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct {
        int size, frames;
        long particles;
    } problems[] = {{64, 6, 1000}, {128, 10, 13000}, {128, 10, 32000}, {128, 10, 64000}};
    struct suite s = suite_parse("rodinia/particlefilter", classes, argc, argv);
    int size = problems[s.class_index].size, frames = problems[s.class_index].frames;
    struct disk disk = make_disk();
    struct video v = {size, size, frames, NULL};
    struct particles p = {.count = problems[s.class_index].particles};
    double **arrays[] = {&p.x, &p.y, &p.next_x, &p.next_y, &p.score, &p.weight, &p.sum_to, &p.mark};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = suite_memory(sizeof(double) * (size_t)p.count);
    v.pixels = suite_memory((size_t)size * (size_t)size * (size_t)frames);
    struct place *found = suite_memory(sizeof *found * (size_t)frames);
    do {
        suite_start(&s);
        make_video(&v, &disk);
        begin(&p, &v);
        for (int frame = 1; frame < frames; frame++) {
            weigh(&p, &v, &disk, frame);
            found[frame] = estimate(&p);
            resample(&p, frame);
        }
        suite_stop(&s);
        check(&v, found);
        suite_checksum(&s, suite_hash(0, found, sizeof *found * (size_t)frames));
        suite_count(&s, "barriers", LOOPS_BEFORE + LOOPS_A_FRAME * (frames - 1));
    } while (suite_next(&s));
    return suite_report(&s);
}
