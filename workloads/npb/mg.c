/* SPDX-License-Identifier: MIT */
// NPB MG: V-cycles of multigrid on a periodic cube find an approximate solution of the Poisson
// equation, whose right-hand side is 20 point charges of +1 and -1. Specification: D. Bailey and
// others, "The NAS Parallel Benchmarks", NASA report RNR-94-007, 1994. Parallelization: H. Jin and
// others, "The OpenMP Implementation of NAS Parallel Benchmarks", NASA report NAS-99-011, 1999.
//
// Synchronization: each kernel is a parallel region, whose static loop divides the planes of one
// grid. Filling the ghost planes (`exchange`) has a second loop, after a barrier. A V-cycle and its
// residual on a grid of edge 2^k run 8k-4 regions: 36 in class S, 60 in classes A and B. Most of
// them work on small grids. The smallest grid has 2 planes, so at most two threads work there and
// the others wait. Two norms are reductions: one before the first cycle, and one after the last.
//
// Differences: one cycle runs before the first round to fault the memory in, and none before the
// other rounds. All threads search for the charges, outside the timed section. The norm leaves out
// the maximum.
#include <omp.h>

#include "../suite.h"
#include "random.h"

enum { LEVELS = 9, MAX_EDGE = (1 << (LEVELS - 1)) + 2, CHARGES = 10 };

struct multigrid {
    int top;                // the finest level; level k has an edge of 2^k points
    const double *smoother; // weights of the centre, of the faces and of the edges
    double *u[LEVELS], *r[LEVELS];
    double *v; // the right-hand side, on the finest level
    long regions, barriers;
};

struct point {
    double score;
    long at;
};

// Return the points of an edge, with a ghost point at either end.
static int edge(int level) { return (1 << level) + 2; }

static long volume(int level) { return (long)edge(level) * edge(level) * edge(level); }

static void count_region(struct multigrid *g, int barriers) {
    g->regions++;
    g->barriers += barriers;
}

static void clear(struct multigrid *g, int level, double *grid) {
    long m = edge(level);
    count_region(g, 1);
#pragma omp parallel for
    for (long i3 = 0; i3 < m; i3++)
        memset(grid + i3 * m * m, 0, sizeof *grid * (size_t)(m * m));
}

// Fill the ghost points with the points of the opposite side.
static void exchange(struct multigrid *g, int level, double *grid) {
    int m = edge(level);
    double(*x)[m][m] = (void *)grid;
    count_region(g, 2);
#pragma omp parallel
    {
#pragma omp for
        for (int i3 = 1; i3 < m - 1; i3++) {
            for (int i2 = 1; i2 < m - 1; i2++) {
                x[i3][i2][0] = x[i3][i2][m - 2];
                x[i3][i2][m - 1] = x[i3][i2][1];
            }
            memcpy(x[i3][0], x[i3][m - 2], sizeof x[0][0]);
            memcpy(x[i3][m - 1], x[i3][1], sizeof x[0][0]);
        }
#pragma omp for nowait
        for (int i2 = 0; i2 < m; i2++) {
            memcpy(x[0][i2], x[m - 2][i2], sizeof x[0][0]);
            memcpy(x[m - 1][i2], x[1][i2], sizeof x[0][0]);
        }
    }
}

// Compute, for each point of a line, the sums of its four nearest and its four diagonal neighbours
// in the plane across the line.
static void neighbours(int m, const double *line, double *restrict nearest,
                       double *restrict diagonal) {
    long plane = (long)m * m;
    const double *below = line - plane, *above = line + plane;
    for (int i = 0; i < m; i++) {
        nearest[i] = line[i - m] + line[i + m] + below[i] + above[i];
        diagonal[i] = below[i - m] + below[i + m] + above[i - m] + above[i + m];
    }
}

// r = v - A u
static void residual(struct multigrid *g, int level, double *rhs) {
    const double centre = -8.0 / 3, edges = 1.0 / 6, corners = 1.0 / 12; // the faces' is 0
    int m = edge(level);
    count_region(g, 1);
#pragma omp parallel for
    for (int i3 = 1; i3 < m - 1; i3++)
        for (int i2 = 1; i2 < m - 1; i2++) {
            double nearest[MAX_EDGE], diagonal[MAX_EDGE];
            long start = ((long)i3 * m + i2) * m;
            const double *u = g->u[level] + start, *v = rhs + start;
            double *r = g->r[level] + start;
            neighbours(m, u, nearest, diagonal);
            for (int i = 1; i < m - 1; i++)
                r[i] = v[i] - centre * u[i] -
                       edges * (diagonal[i] + nearest[i - 1] + nearest[i + 1]) -
                       corners * (diagonal[i - 1] + diagonal[i + 1]);
        }
    exchange(g, level, g->r[level]);
}

// u = u + S r
static void smooth(struct multigrid *g, int level) {
    const double *weight = g->smoother;
    int m = edge(level);
    count_region(g, 1);
#pragma omp parallel for
    for (int i3 = 1; i3 < m - 1; i3++)
        for (int i2 = 1; i2 < m - 1; i2++) {
            double nearest[MAX_EDGE], diagonal[MAX_EDGE];
            long start = ((long)i3 * m + i2) * m;
            const double *r = g->r[level] + start;
            double *u = g->u[level] + start;
            neighbours(m, r, nearest, diagonal);
            for (int i = 1; i < m - 1; i++)
                u[i] += weight[0] * r[i] + weight[1] * (r[i - 1] + r[i + 1] + nearest[i]) +
                        weight[2] * (diagonal[i] + nearest[i - 1] + nearest[i + 1]);
        }
    exchange(g, level, g->u[level]);
}

// Project the residual of `level` onto the next coarser level.
static void restrict_residual(struct multigrid *g, int level) {
    int fine = edge(level), coarse = edge(level - 1);
    count_region(g, 1);
#pragma omp parallel for
    for (int i3 = 1; i3 < coarse - 1; i3++)
        for (int i2 = 1; i2 < coarse - 1; i2++) {
            double nearest[MAX_EDGE], diagonal[MAX_EDGE];
            const double *r = g->r[level] + (2L * i3 * fine + 2 * i2) * fine;
            double *to = g->r[level - 1] + ((long)i3 * coarse + i2) * coarse;
            neighbours(fine, r, nearest, diagonal);
            for (int i1 = 1; i1 < coarse - 1; i1++) {
                int i = 2 * i1;
                to[i1] = 0.5 * r[i] + 0.25 * (r[i - 1] + r[i + 1] + nearest[i]) +
                         0.125 * (nearest[i - 1] + nearest[i + 1] + diagonal[i]) +
                         0.0625 * (diagonal[i - 1] + diagonal[i + 1]);
            }
        }
    exchange(g, level - 1, g->r[level - 1]);
}

// Add `scale` times a line of `coarse` points, interpolated to twice as many.
static void add_line(int coarse, double *restrict fine, const double *restrict from, double scale) {
    for (int i = 0; i < coarse - 1; i++) {
        fine[2 * i] += scale * from[i];
        fine[2 * i + 1] += 0.5 * scale * (from[i] + from[i + 1]);
    }
}

// Add the interpolated solution of the next coarser level to the solution of `level`. Fills the
// ghost points too, so no exchange follows.
static void interpolate(struct multigrid *g, int level) {
    int fine = edge(level), coarse = edge(level - 1);
    count_region(g, 1);
#pragma omp parallel for
    for (int i3 = 0; i3 < coarse - 1; i3++)
        for (int i2 = 0; i2 < coarse - 1; i2++) {
            double aside[MAX_EDGE], above[MAX_EDGE], both[MAX_EDGE];
            const double *from = g->u[level - 1] + ((long)i3 * coarse + i2) * coarse;
            const double *next = from + (long)coarse * coarse;
            double *to = g->u[level] + (2L * i3 * fine + 2 * i2) * fine;
            double *upper = to + (long)fine * fine;
            for (int i = 0; i < coarse; i++) {
                aside[i] = from[i] + from[i + coarse];
                above[i] = from[i] + next[i];
                both[i] = aside[i] + next[i] + next[i + coarse];
            }
            add_line(coarse, to, from, 1);
            add_line(coarse, to + fine, aside, 0.5);
            add_line(coarse, upper, above, 0.5);
            add_line(coarse, upper + fine, both, 0.25);
        }
}

static void cycle(struct multigrid *g) {
    for (int level = g->top; level > 1; level--)
        restrict_residual(g, level);
    clear(g, 1, g->u[1]);
    smooth(g, 1);
    for (int level = 2; level <= g->top; level++) {
        if (level < g->top)
            clear(g, level, g->u[level]);
        interpolate(g, level);
        residual(g, level, level < g->top ? g->r[level] : g->v);
        smooth(g, level);
    }
    residual(g, g->top, g->v);
}

// Return the L2 norm of the residual on the finest level.
static double norm(struct multigrid *g) {
    int m = edge(g->top);
    double(*r)[m][m] = (void *)g->r[g->top];
    double sum = 0;
    count_region(g, 1);
#pragma omp parallel for reduction(+ : sum)
    for (int i3 = 1; i3 < m - 1; i3++)
        for (int i2 = 1; i2 < m - 1; i2++)
            for (int i1 = 1; i1 < m - 1; i1++)
                sum += r[i3][i2][i1] * r[i3][i2][i1];
    return sqrt(sum / pow(m - 2, 3));
}

static void keep_none(struct point *best) {
    for (int i = 0; i < CHARGES; i++)
        best[i] = (struct point){-2, 0}; // below every score
}

// Keep the CHARGES best points, the worst of them first.
static void keep(struct point *best, struct point candidate) {
    if (candidate.score <= best[0].score)
        return;
    int i = 0;
    for (; i < CHARGES - 1 && best[i + 1].score < candidate.score; i++)
        best[i] = best[i + 1];
    best[i] = candidate;
}

// Set the right-hand side and its ghost points. Each point draws a random number: the ten largest
// give a charge of +1, the ten smallest one of -1, and the others 0.
static void place_charges(struct multigrid *g) {
    long n = 1L << g->top, m = edge(g->top);
    struct point largest[CHARGES], smallest[CHARGES];
    keep_none(largest);
    keep_none(smallest);
#pragma omp parallel
    {
        struct point high[CHARGES], low[CHARGES];
        keep_none(high);
        keep_none(low);
#pragma omp for
        for (long i3 = 0; i3 < n; i3++) {
            double values[MAX_EDGE], seed = 314159265;
            npb_random(&seed, npb_power(NPB_MULTIPLIER, i3 * n * n));
            for (long i2 = 0; i2 < n; i2++) {
                npb_random_fill(n, &seed, NPB_MULTIPLIER, values);
                for (long i1 = 0; i1 < n; i1++) {
                    long at = ((i3 + 1) * m + i2 + 1) * m + i1 + 1;
                    keep(high, (struct point){values[i1], at});
                    keep(low, (struct point){-values[i1], at});
                }
            }
        }
#pragma omp critical
        for (int i = 0; i < CHARGES; i++) {
            keep(largest, high[i]);
            keep(smallest, low[i]);
        }
    }
    clear(g, g->top, g->v);
    for (int i = 0; i < CHARGES; i++) {
        g->v[largest[i].at] = 1;
        g->v[smallest[i].at] = -1;
    }
    exchange(g, g->top, g->v);
}

// Allocate memory zeroed by the kernel: a page is on the NUMA node of the thread that first writes
// it.
static double *grid_memory(int level) {
    double *grid = calloc((size_t)volume(level), sizeof *grid);
    if (!grid)
        fail("no memory for a grid of level %d", level);
    return grid;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"S", "W", "A", "B", NULL};
    static const double small[] = {-3.0 / 8, 1.0 / 32, -1.0 / 64};
    static const double large[] = {-3.0 / 17, 1.0 / 33, -1.0 / 61};
    static const struct class {
        int top, cycles;
        const double *smoother;
        double norm;
    } classes[] = {{5, 4, small, 0.5307707005734e-04},
                   {7, 4, small, 0.6467329375339e-05},
                   {8, 4, small, 0.2433365309069e-05},
                   {8, 20, large, 0.1800564401355e-05}};
    struct suite s = suite_parse("npb/mg", names, argc, argv);
    const struct class *class = &classes[s.class_index];
    struct multigrid g = {.top = class->top, .smoother = class->smoother};
    for (int level = 1; level <= g.top; level++) {
        g.u[level] = grid_memory(level);
        g.r[level] = grid_memory(level);
    }
    g.v = grid_memory(g.top);
    cycle(&g);
    do {
        clear(&g, g.top, g.u[g.top]);
        place_charges(&g);
        g.regions = g.barriers = 0;
        suite_start(&s);
        residual(&g, g.top, g.v);
        double first = norm(&g);
        for (int i = 0; i < class->cycles; i++)
            cycle(&g);
        double last = norm(&g);
        suite_stop(&s);
        suite_verify(&s, "the first norm", first, sqrt(2 * CHARGES / pow(1 << g.top, 3)), 1e-12);
        suite_verify(&s, "the last norm", last, class->norm, 1e-8);
        suite_count(&s, "regions", g.regions);
        suite_count(&s, "barriers", g.barriers);
    } while (suite_next(&s));
    for (int level = 1; level <= g.top; level++) {
        free(g.u[level]);
        free(g.r[level]);
    }
    free(g.v);
    return suite_report(&s);
}
