/* SPDX-License-Identifier: MIT */
// Detects white blood cells in a generated video of a vessel, and tracks them as they roll along.
//
// Specification: Ray and Acton, "Motion Gradient Vector Flow: An External Force for Tracking
// Rolling Leukocytes with Shape and Size Constrained Active Contours", IEEE Trans. Medical Imaging
// 23(12), 2004; Dong, Ray, Acton, "Intravital Leukocyte Detection Using the Gradient Inverse
// Coefficient of Variation", ibid. 24(7), 2005; Boyer, Tarjan, Acton, Skadron, "Accelerating
// Leukocyte Tracking Using CUDA", IPDPS 2009; Che et al., "Rodinia", IISWC 2009.
//
// Threads: two parallel loops detect cells in the first frame (scores by columns, dilation by
// rows). Then one loop per frame tracks them. Each loop ends with a barrier. Cells differ in their
// number of iterations, and a team larger than the number of cells is partly idle. One thread
// refines the detected cells and reads the frames.
//
// Differences: the video is generated, as 8-bit pixels, before the timed section. Only bright cells
// are detected. Detected circles are refined by climbing the score, not as a spline. The radial
// snake's forces are this program's own. The loops have no schedule clause, as in the original.
#include <omp.h>

#include "../suite.h"
#include "noise.h"

enum {
    ANGLES = 150,
    CIRCLES = 7,
    RADIUS_LEAST = 8,
    RADIUS_STEP = 2,
    RADIUS_MOST = RADIUS_LEAST + (CIRCLES - 1) * RADIUS_STEP,
    MARGIN = RADIUS_MOST + 2, // pixels at the rim without centers of cells
    DILATE = 12,
    CELLS_MOST = 64,
    SNAKE = 20,   // points on a contour
    PATCH_X = 40, // pixels around a cell, on either side
    PATCH_Y = 20,
    PATCH_WIDTH = 2 * PATCH_X + 1,
    PATCH_HEIGHT = 2 * PATCH_Y + 1,
    LOOPS_DETECT = 2,
};
enum { SEQUENCE_CELL = 64, SEQUENCE_CAMERA };

static const double threshold = 1.8;        // of the score
static const double flow_x = 1, flow_y = 1; // direction of the cells, for the vector flow

struct problem {
    int width, height, across, down; // frame in pixels; grid of cells
    int frames;                      // number of tracked frames, after the first
};

struct cell {
    double x, y, radius;
};

// A snake, a closed contour: radii of points at equal angles.
struct snake {
    double x, y, expected, radius[SNAKE];
};

struct image {
    int width, height;
    double *level;
};

static double *at(const struct image *i, int y, int x) {
    return &i->level[(size_t)y * (size_t)i->width + (size_t)x];
}

static struct image make_image(int width, int height) {
    size_t size = sizeof(double) * (size_t)width * (size_t)height;
    return (struct image){width, height, suite_memory(size)};
}

static double of_cell(int cell, int property) {
    return noise_uniform(SEQUENCE_CELL, (uint64_t)(cell * 8 + property));
}

static struct cell true_cell(const struct problem *p, int cell, int frame) {
    double column = cell % p->across + 0.5, row = cell / p->across + 0.5;
    double room_x = (double)(p->width - 2 * MARGIN - 24) / p->across;
    double room_y = (double)(p->height - 2 * MARGIN - 12) / p->down;
    return (struct cell){
        MARGIN + 4 + room_x * column + 6 * of_cell(cell, 0) + (0.8 + of_cell(cell, 1)) * frame,
        MARGIN + 4 + room_y * row + 4 * of_cell(cell, 2) + 0.5 * of_cell(cell, 3) * frame,
        9 + 3 * of_cell(cell, 4),
    };
}

// Generate a frame: bright disks with soft rims, on a vessel that is brightest in its middle.
static void make_frame(const struct problem *p, int frame, uint8_t *pixel) {
    struct image clean = make_image(p->width, p->height);
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            *at(&clean, y, x) = 70 + 20 * sin(M_PI * y / p->height);
    for (int i = 0; i < p->across * p->down; i++) {
        struct cell c = true_cell(p, i, frame);
        for (int y = (int)c.y - MARGIN; y <= (int)c.y + MARGIN; y++)
            for (int x = (int)c.x - MARGIN; x <= (int)c.x + MARGIN; x++)
                if (x >= 0 && y >= 0 && x < p->width && y < p->height)
                    *at(&clean, y, x) += (45 + 50 * of_cell(i, 5)) /
                                         (1 + exp((hypot(x - c.x, y - c.y) - c.radius) / 0.7));
    }
    for (int i = 0; i < p->width * p->height; i++)
        pixel[i] = noise_pixel(clean.level[i] +
                               2 * noise_normal(SEQUENCE_CAMERA + (uint64_t)frame, (uint64_t)i));
    free(clean.level);
}

static void read_frame(struct image *to, const uint8_t *pixel) {
    for (int i = 0; i < to->width * to->height; i++)
        to->level[i] = pixel[i];
}

static int clamp(int value, int limit) { return value < 0 ? 0 : value < limit ? value : limit - 1; }

// Compute central differences.
static void gradients(const struct image *image, struct image *by_x, struct image *by_y) {
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++) {
            int right = clamp(x + 1, image->width), down = clamp(y + 1, image->height);
            *at(by_x, y, x) =
                (*at(image, y, right) - *at(image, y, clamp(x - 1, image->width))) / 2;
            *at(by_y, y, x) =
                (*at(image, down, x) - *at(image, clamp(y - 1, image->height), x)) / 2;
        }
}

struct detector {
    struct image by_x, by_y; // gradients
    double cosine[ANGLES], sine[ANGLES];
};

static struct detector make_detector(const struct image *frame) {
    struct detector d = {
        make_image(frame->width, frame->height), make_image(frame->width, frame->height), {0}, {0}};
    gradients(frame, &d.by_x, &d.by_y);
    for (int i = 0; i < ANGLES; i++) {
        d.cosine[i] = cos(2 * M_PI * i / ANGLES);
        d.sine[i] = sin(2 * M_PI * i / ANGLES);
    }
    return d;
}

// Return the mean of the gradient towards a circle's center, divided by its deviation (GICOV):
// large if the circle is a bright cell's rim.
static double score(const struct detector *d, double x, double y, double radius) {
    double inward[ANGLES], sum = 0, squares = 0;
    for (int i = 0; i < ANGLES; i++) {
        int column = (int)(x + radius * d->cosine[i] + 0.5);
        int row = (int)(y + radius * d->sine[i] + 0.5);
        inward[i] =
            -*at(&d->by_x, row, column) * d->cosine[i] - *at(&d->by_y, row, column) * d->sine[i];
        sum += inward[i];
    }
    for (int i = 0; i < ANGLES; i++)
        squares += (inward[i] - sum / ANGLES) * (inward[i] - sum / ANGLES);
    return squares > 0 ? sum / ANGLES / sqrt(squares / (ANGLES - 1)) : 0;
}

static double best_circle(const struct detector *d, int x, int y, double *radius) {
    double best = 0;
    for (int i = 0; i < CIRCLES; i++) {
        double found = score(d, x, y, RADIUS_LEAST + i * RADIUS_STEP);
        if (found > best) {
            best = found;
            *radius = RADIUS_LEAST + i * RADIUS_STEP;
        }
    }
    return best;
}

static void score_image(const struct detector *d, struct image *scores, struct image *radii) {
#pragma omp parallel for
    for (int x = MARGIN; x < scores->width - MARGIN; x++)
        for (int y = MARGIN; y < scores->height - MARGIN; y++)
            *at(scores, y, x) = best_circle(d, x, y, at(radii, y, x));
}

// Set each pixel to the largest one in a disk around it.
static void dilate(const struct image *from, struct image *to) {
#pragma omp parallel for
    for (int y = 0; y < from->height; y++)
        for (int x = 0; x < from->width; x++) {
            double most = 0;
            for (int row = -DILATE; row <= DILATE; row++)
                for (int column = -DILATE; column <= DILATE; column++)
                    if (row * row + column * column <= DILATE * DILATE && y + row >= 0 &&
                        x + column >= 0 && y + row < from->height && x + column < from->width)
                        most = fmax(most, *at(from, y + row, x + column));
            *at(to, y, x) = most;
        }
}

// Climb the score by shrinking steps of center and radius.
static struct cell refine(const struct detector *d, struct cell c) {
    double best = score(d, c.x, c.y, c.radius);
    for (double step = 1; step > 0.1; step /= 2)
        for (int moved = 1; moved;) {
            moved = 0;
            for (int i = 0; i < 6; i++) {
                struct cell try = c;
                double *property[] = {&try.x, &try.y, &try.radius};
                *property[i / 2] += i % 2 ? step : -step;
                if (try.radius < RADIUS_LEAST || try.radius > RADIUS_MOST || try.x < MARGIN ||
                    try.y < MARGIN || try.x >= d->by_x.width - MARGIN ||
                    try.y >= d->by_x.height - MARGIN)
                    continue;
                double found = score(d, try.x, try.y, try.radius);
                if (found > best) {
                    best = found;
                    c = try;
                    moved = 1;
                }
            }
        }
    return c;
}

// Find cells: local maxima of the score above the threshold. Returns their number.
static int detect(const struct image *frame, struct cell *cells) {
    struct detector d = make_detector(frame);
    struct image scores = make_image(frame->width, frame->height);
    struct image radii = make_image(frame->width, frame->height);
    struct image dilated = make_image(frame->width, frame->height);
    int count = 0;
    score_image(&d, &scores, &radii);
    dilate(&scores, &dilated);
    for (int y = 0; y < frame->height; y++)
        for (int x = 0; x < frame->width; x++)
            if (*at(&scores, y, x) > threshold && *at(&scores, y, x) == *at(&dilated, y, x) &&
                count < CELLS_MOST)
                cells[count++] = refine(&d, (struct cell){x, y, *at(&radii, y, x)});
    free(d.by_x.level);
    free(d.by_y.level);
    free(scores.level);
    free(radii.level);
    free(dilated.level);
    return count;
}

// A part of the frame around a cell. Pixel 0, 0 is at `left`, `top` of the frame.
struct patch {
    int left, top, width, height;
    double edge[PATCH_HEIGHT][PATCH_WIDTH], flow[2][PATCH_HEIGHT][PATCH_WIDTH];
};

// Take a patch around a snake: the size of the gradient, scaled to 0 to 1.
static void take_patch(struct patch *p, const struct image *frame, const struct snake *s) {
    double least = INFINITY, most = 0;
    p->left = clamp((int)s->x - PATCH_X, frame->width);
    p->top = clamp((int)s->y - PATCH_Y, frame->height);
    p->width = clamp((int)s->x + PATCH_X, frame->width) - p->left + 1;
    p->height = clamp((int)s->y + PATCH_Y, frame->height) - p->top + 1;
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            int row = p->top + y, column = p->left + x;
            double by_x = *at(frame, row, clamp(column + 1, frame->width)) -
                          *at(frame, row, clamp(column - 1, frame->width));
            double by_y = *at(frame, clamp(row + 1, frame->height), column) -
                          *at(frame, clamp(row - 1, frame->height), column);
            p->edge[y][x] = hypot(by_x, by_y) / 2;
            least = fmin(least, p->edge[y][x]);
            most = fmax(most, p->edge[y][x]);
        }
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            p->edge[y][x] = (p->edge[y][x] - least) / (most - least + 0x1p-52);
    memcpy(p->flow[0], p->edge, sizeof p->edge);
}

// The regularized step function: 0 for negative numbers, 1 for positive ones.
static double heaviside(double z) { return 0.5 + atan(z * 1e10) / M_PI; }

// Return the flow into a pixel from its 8 neighbors, along the cells' motion.
static double inflow(const struct patch *p, double (*flow)[PATCH_WIDTH], int y, int x) {
    double sum = 0;
    for (int down = -1; down <= 1; down++)
        for (int right = -1; right <= 1; right++) {
            double difference =
                flow[clamp(y + down, p->height)][clamp(x + right, p->width)] - flow[y][x];
            if (down || right)
                sum += heaviside(difference * (right * flow_x + down * flow_y)) * difference;
        }
    return sum;
}

// Solve for the motion gradient vector flow. Returns the index of p->flow with the result.
static int vector_flow(struct patch *p) {
    const double mu = 0.5, lambda = 8 * mu + 1, enough = 1e-5;
    double change = 1;
    int now = 0;
    for (int i = 0; i < 500 && change > enough; i++) {
        change = 0;
        for (int y = 0; y < p->height; y++)
            for (int x = 0; x < p->width; x++) {
                double old = p->flow[now][y][x], edge = p->edge[y][x];
                double new = old + mu / lambda *inflow(p, p->flow[now], y, x);
                new -= edge *(new - edge) / lambda;
                p->flow[!now][y][x] = new;
                change += fabs(new - old);
            }
        change /= p->width * p->height;
        now = !now;
    }
    return now;
}

// Compute the flow's slope at a place, from the surrounding pixels.
static void slope(const struct patch *p, double (*flow)[PATCH_WIDTH], double x, double y,
                  double *by_x, double *by_y) {
    x = fmin(fmax(x, 1), p->width - 2.001);
    y = fmin(fmax(y, 1), p->height - 2.001);
    int column = (int)x, row = (int)y;
    double right = x - column, down = y - row;
    const double *a = &flow[row][column], *b = &flow[row + 1][column];
    *by_x = (1 - down) * (a[1] - a[0]) + down * (b[1] - b[0]);
    *by_y = (1 - right) * (b[0] - a[0]) + right * (b[1] - a[1]);
}

// Move the contour up the flow, with forces that keep it round and near its size.
static void evolve(struct snake *s, const struct patch *p, double (*flow)[PATCH_WIDTH]) {
    const double pull = 1, size = 0.02, smooth = 0.2, enough = 1e-4;
    double moved = 1;
    for (int i = 0; i < 1000 && moved > enough; i++) {
        double old[SNAKE], shift_x = 0, shift_y = 0;
        memcpy(old, s->radius, sizeof old);
        moved = 0;
        for (int k = 0; k < SNAKE; k++) {
            double cosine = cos(2 * M_PI * k / SNAKE), sine = sin(2 * M_PI * k / SNAKE);
            double by_x, by_y;
            slope(p, flow, s->x - p->left + old[k] * cosine, s->y - p->top + old[k] * sine, &by_x,
                  &by_y);
            double bend = old[(k + 1) % SNAKE] - 2 * old[k] + old[(k + SNAKE - 1) % SNAKE];
            double force = pull * (by_x * cosine + by_y * sine) + size * (s->expected - old[k]) +
                           smooth * bend;
            s->radius[k] += force;
            shift_x += pull * by_x / SNAKE;
            shift_y += pull * by_y / SNAKE;
            moved = fmax(moved, fabs(force));
        }
        s->x += shift_x;
        s->y += shift_y;
        moved = fmax(moved, hypot(shift_x, shift_y));
    }
}

static void track(const struct image *frame, struct snake *snakes, int count) {
#pragma omp parallel for
    for (int i = 0; i < count; i++) {
        struct patch p;
        take_patch(&p, frame, &snakes[i]);
        evolve(&snakes[i], &p, p.flow[vector_flow(&p)]);
    }
}

// Check that each generated cell was found once and is near one of the places.
static void check(const struct problem *p, int frame, const struct snake *snakes, int count) {
    if (count != p->across * p->down)
        fail("leukocyte: %d cells detected, not %d", count, p->across * p->down);
    for (int i = 0; i < count; i++) {
        struct cell c = true_cell(p, i, frame);
        double nearest = INFINITY;
        for (int k = 0; k < count; k++)
            nearest = fmin(nearest, hypot(snakes[k].x - c.x, snakes[k].y - c.y));
        if (!(nearest < 2))
            fail("leukocyte: frame %d: cell %d is %.2f pixels off", frame, i, nearest);
    }
}

static void begin(struct snake *s, const struct cell *c) {
    s->x = c->x;
    s->y = c->y;
    s->expected = c->radius;
    for (int k = 0; k < SNAKE; k++)
        s->radius[k] = c->radius;
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct problem problems[] = {
        {160, 120, 2, 1, 1}, {240, 120, 3, 1, 1}, {320, 219, 3, 3, 2}, {640, 219, 9, 4, 2}};
    struct suite s = suite_parse("rodinia/leukocyte", classes, argc, argv);
    const struct problem *p = &problems[s.class_index];
    size_t pixels = (size_t)p->width * (size_t)p->height;
    size_t frames = (size_t)p->frames + 1, kept = sizeof(struct snake) * CELLS_MOST;
    uint8_t *video = suite_memory(pixels * frames);
    struct snake *snakes = suite_memory(kept * frames);
    struct image image = make_image(p->width, p->height);
    for (int k = 0; k <= p->frames; k++)
        make_frame(p, k, video + pixels * (size_t)k);
    do {
        struct cell cells[CELLS_MOST];
        suite_start(&s);
        read_frame(&image, video);
        int count = detect(&image, cells);
        for (int i = 0; i < count; i++)
            begin(&snakes[i], &cells[i]);
        for (int k = 1; k <= p->frames; k++) {
            struct snake *now = snakes + k * CELLS_MOST;
            memcpy(now, now - CELLS_MOST, kept);
            read_frame(&image, video + pixels * (size_t)k);
            track(&image, now, count);
        }
        suite_stop(&s);
        for (int k = 0; k <= p->frames; k++)
            check(p, k, snakes + k * CELLS_MOST, count);
        suite_checksum(&s, suite_hash(0, snakes, kept * frames));
        suite_count(&s, "barriers", LOOPS_DETECT + p->frames);
    } while (suite_next(&s));
    return suite_report(&s);
}
