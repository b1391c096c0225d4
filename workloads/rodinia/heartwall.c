/* SPDX-License-Identifier: MIT */
// Tracks points of a heart's inner and outer wall through a generated ultrasound video.
//
// Specification: Szafaryn, Skadron, Saucerman, "Experiences Accelerating MATLAB Systems Biology
// Applications", Workshop on Biomedicine in Computing (ISCA), 2009; Che et al., "Rodinia", IISWC
// 2009. 51 points, each with a template of 51 x 51 pixels. A normalized cross-correlation finds it
// in the 81 x 81 pixels around its place. Every tenth frame renews place and template.
//
// Threads: one parallel loop over the points for each frame, so one barrier per frame. Points cost
// the same, but 51 is seldom a multiple of the number of threads. Before, one thread reads the
// frame.
//
// Differences: the video is generated, as 8-bit pixels, before the timed section. As in the
// original, a point correlates at all shifts where template and window overlap, and then rejects
// most of them with a mask of allowed moves. The mask is a comparison here, not a second
// convolution.
#include <omp.h>

#include "../suite.h"
#include "noise.h"

enum {
    INNER = 20,
    OUTER = 31,
    POINTS = INNER + OUTER,
    HALF = 25, // pixels of a template on either side of its center
    TEMPLATE = 2 * HALF + 1,
    AREA = TEMPLATE * TEMPLATE,
    WINDOW_HALF = 40,
    WINDOW = 2 * WINDOW_HALF + 1,
    PAD = TEMPLATE - 1, // zeros on every side of the window
    PADDED = WINDOW + 2 * PAD,
    SHIFTS = WINDOW + PAD, // shifts with overlap of template and window, per axis
    SHIFT_NONE = SHIFTS / 2,
    BLOCK = 44, // shifts whose products stay in registers
    SHIFTS_PADDED = 3 * BLOCK,
    MOVE_MOST = 5, // from one frame to the next, per axis
    RENEW = 10,    // frames between renewals
    SIZE = 448,    // rows and columns of a frame
    CENTER = SIZE / 2,
    PERIOD = 30, // of the heart beat, in frames
};
enum { SEQUENCE_TISSUE = 32, SEQUENCE_CAMERA };

static const double radius_inner = 85, radius_outer = 145; // at rest
static const float renew_keeps = 0.87f;                    // share of the old template

struct place {
    int row, column;
};

// One point's search. `sum` and `squares` are summed-area tables of the window.
struct search {
    float window[PADDED][PADDED + SHIFTS_PADDED - SHIFTS]; // the last columns are padding, too
    int sum[PADDED + 1][PADDED + 1], squares[PADDED + 1][PADDED + 1];
    float centered[TEMPLATE][TEMPLATE]; // the template minus its mean
    double correlation[SHIFTS][SHIFTS];
};

struct point {
    struct place base; // place of the window: that of the last renewal
    struct place now;
    float template[TEMPLATE][TEMPLATE];
    struct search search;
};

// The tissue's motion in a frame: the heart contracts, and drifts a little.
struct motion {
    double scale, drift;
};

static struct motion motion(int frame) {
    double phase = 2 * M_PI * frame / PERIOD;
    return (struct motion){1 - 0.04 * (1 - cos(phase)), 2 * sin(phase)};
}

// Generate speckle in a ring of muscle, with a dark cavity inside: 0 to 255.
static void make_tissue(float *tissue, float *scratch) {
    for (long i = 0; i < SIZE * SIZE; i++)
        scratch[i] = (float)noise_uniform(SEQUENCE_TISSUE, (uint64_t)i);
    for (long i = 0; i < SIZE * SIZE; i++) {
        long row = i / SIZE, column = i % SIZE;
        float sum = 0;
        for (long y = row - 2; y <= row + 2; y++)
            for (long x = column - 2; x <= column + 2; x++)
                sum += scratch[(y + SIZE) % SIZE * SIZE + (x + SIZE) % SIZE];
        double radius = hypot((double)(row - CENTER), (double)(column - CENTER));
        double level = radius < radius_inner ? 40 : radius < radius_outer ? 150 : 90;
        tissue[i] = (float)(level * (1 + 4 * (sum / 25 - 0.5)));
    }
}

static float sample(const float *image, double row, double column) {
    long y = (long)row, x = (long)column;
    if (row < 0 || column < 0 || y >= SIZE - 1 || x >= SIZE - 1)
        return 0;
    float down = (float)(row - (double)y), right = (float)(column - (double)x);
    const float *p = image + y * SIZE + x;
    return (1 - down) * ((1 - right) * p[0] + right * p[1]) +
           down * ((1 - right) * p[SIZE] + right * p[SIZE + 1]);
}

static void make_frame(uint8_t *pixel, const float *tissue, int frame) {
    struct motion m = motion(frame);
    for (long i = 0; i < SIZE * SIZE; i++) {
        double row = (double)(i / SIZE - CENTER) - m.drift, column = (double)(i % SIZE - CENTER);
        double camera = noise_uniform(SEQUENCE_CAMERA + (uint64_t)frame, (uint64_t)i) - 0.5;
        pixel[i] = noise_pixel(sample(tissue, CENTER + row / m.scale, CENTER + column / m.scale) +
                               20 * camera);
    }
}

static double true_radius(int point) { return point < INNER ? radius_inner : radius_outer; }

static double true_angle(int point) {
    return 2 * M_PI * (point < INNER ? (double)point / INNER : (double)(point - INNER) / OUTER);
}

static double true_row(int point, int frame) {
    struct motion m = motion(frame);
    return CENTER + m.drift + m.scale * true_radius(point) * sin(true_angle(point));
}

static double true_column(int point, int frame) {
    return CENTER + motion(frame).scale * true_radius(point) * cos(true_angle(point));
}

static const float *pixel_at(const float *frame, struct place place) {
    return frame + place.row * SIZE + place.column;
}

static void take_template(struct point *p, const float *frame) {
    const float *from = pixel_at(frame, p->now);
    for (int row = 0; row < TEMPLATE; row++)
        for (int column = 0; column < TEMPLATE; column++)
            p->template[row][column] = from[(row - HALF) * SIZE + column - HALF];
}

static void renew_template(struct point *p, const float *frame) {
    const float *from = pixel_at(frame, p->now);
    for (int row = 0; row < TEMPLATE; row++)
        for (int column = 0; column < TEMPLATE; column++) {
            float *to = &p->template[row][column];
            *to = renew_keeps * *to + (1 - renew_keeps) * from[(row - HALF) * SIZE + column - HALF];
        }
    p->base = p->now;
}

static void take_window(struct search *s, const float *frame, struct place base) {
    const float *from = pixel_at(frame, base);
    for (int row = 0; row < WINDOW; row++)
        for (int column = 0; column < WINDOW; column++)
            s->window[row + PAD][column + PAD] =
                from[(row - WINDOW_HALF) * SIZE + column - WINDOW_HALF];
    for (int row = 0; row < PADDED; row++) {
        int sum = 0, squares = 0;
        for (int column = 0; column < PADDED; column++) {
            int level = (int)s->window[row][column];
            sum += level;
            squares += level * level;
            s->sum[row + 1][column + 1] = s->sum[row][column + 1] + sum;
            s->squares[row + 1][column + 1] = s->squares[row][column + 1] + squares;
        }
    }
}

// Return the sum over the pixels that the template covers at this row and column.
static int covered(const int table[PADDED + 1][PADDED + 1], int row, int column) {
    return table[row + TEMPLATE][column + TEMPLATE] - table[row][column + TEMPLATE] -
           table[row + TEMPLATE][column] + table[row][column];
}

// Set `product` to the scalar products of template and window at BLOCK shifts of a row.
static void multiply(const struct search *s, int shift, int first, float product[BLOCK]) {
    float sum[BLOCK] = {0};
    int begin = shift < PAD ? PAD - shift : 0;
    int end = shift >= WINDOW ? SHIFTS - shift : TEMPLATE; // other rows meet zeros
    for (int row = begin; row < end; row++)
        for (int column = 0; column < TEMPLATE; column++) {
            const float *window = &s->window[row + shift][column + first];
            for (int i = 0; i < BLOCK; i++)
                sum[i] += s->centered[row][column] * window[i];
        }
    memcpy(product, sum, sizeof sum);
}

// Compute a row of correlations. norm: length of the centered template.
static void correlate(struct search *s, double norm, int shift) {
    float product[SHIFTS_PADDED];
    for (int first = 0; first < SHIFTS_PADDED; first += BLOCK)
        multiply(s, shift, first, product + first);
    for (int i = 0; i < SHIFTS; i++) {
        double sum = covered(s->sum, shift, i);
        double variance = covered(s->squares, shift, i) - sum * sum / AREA;
        s->correlation[shift][i] = variance > 0 ? product[i] / (norm * sqrt(variance)) : 0;
    }
}

// Subtract the template's mean. Returns the length of the rest.
static double center(struct point *p) {
    double sum = 0, squares = 0;
    for (int i = 0; i < AREA; i++)
        sum += p->template[i / TEMPLATE][i % TEMPLATE];
    for (int i = 0; i < AREA; i++) {
        float level = p->template[i / TEMPLATE][i % TEMPLATE] - (float)(sum / AREA);
        p->search.centered[i / TEMPLATE][i % TEMPLATE] = level;
        squares += level * level;
    }
    return sqrt(squares);
}

static void find(struct point *p, const float *frame) {
    struct search *s = &p->search;
    struct place found = p->now;
    double best = -1, norm = center(p);
    take_window(s, frame, p->base);
    for (int shift = 0; shift < SHIFTS; shift++)
        correlate(s, norm, shift);
    for (int y = 0; y < SHIFTS; y++)
        for (int x = 0; x < SHIFTS; x++) {
            struct place to = {p->base.row + y - SHIFT_NONE, p->base.column + x - SHIFT_NONE};
            if (abs(to.row - p->now.row) <= MOVE_MOST &&
                abs(to.column - p->now.column) <= MOVE_MOST && s->correlation[y][x] > best) {
                best = s->correlation[y][x];
                found = to;
            }
        }
    p->now = found;
}

static void read_frame(float *to, const uint8_t *from) {
    for (long i = 0; i < SIZE * SIZE; i++)
        to[i] = from[i];
}

// Track all points. track: set to the points' places in each frame.
static void follow(struct point *points, const uint8_t *video, int frames, float *frame,
                   struct place *track) {
    for (int k = 0; k < frames; k++) {
        read_frame(frame, video + (size_t)k * SIZE * SIZE);
#pragma omp parallel for
        for (int i = 0; i < POINTS; i++) {
            struct point *p = &points[i];
            if (k == 0)
                take_template(p, frame);
            else
                find(p, frame);
            if (k > 0 && k % RENEW == 0)
                renew_template(p, frame);
            track[k * POINTS + i] = p->now;
        }
    }
}

static void check(const struct place *track, int frames) {
    for (int k = 0; k < frames; k++)
        for (int i = 0; i < POINTS; i++) {
            double off = hypot(track[k * POINTS + i].row - true_row(i, k),
                               track[k * POINTS + i].column - true_column(i, k));
            if (!(off < 3))
                fail("heartwall: frame %d, point %d: %.2f pixels off", k, i, off);
        }
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const int lengths[] = {2, 3, 9, 32};
    struct suite s = suite_parse("rodinia/heartwall", classes, argc, argv);
    int frames = lengths[s.class_index];
    size_t pixels = SIZE * SIZE, places = (size_t)frames * POINTS;
    float *tissue = suite_memory(sizeof *tissue * pixels);
    float *frame = suite_memory(sizeof *frame * pixels);
    uint8_t *video = suite_memory(pixels * (size_t)frames);
    struct point *points = suite_memory(sizeof *points * POINTS);
    struct place *track = suite_memory(sizeof *track * places);
    make_tissue(tissue, frame);
    for (int k = 0; k < frames; k++)
        make_frame(video + pixels * (size_t)k, tissue, k);
    do {
        for (int i = 0; i < POINTS; i++) {
            points[i].now.row = (int)lround(true_row(i, 0));
            points[i].now.column = (int)lround(true_column(i, 0));
            points[i].base = points[i].now;
        }
        suite_start(&s);
        follow(points, video, frames, frame, track);
        suite_stop(&s);
        check(track, frames);
        suite_checksum(&s, suite_hash(0, track, sizeof *track * places));
        suite_count(&s, "barriers", frames);
    } while (suite_next(&s));
    return suite_report(&s);
}
