/* SPDX-License-Identifier: MIT */
// NPB LU: symmetric successive over-relaxation (SSOR) of the discrete Navier-Stokes equations. Each
// time step solves a block lower and a block upper triangular system. Specification: D. Bailey and
// others, "The NAS Parallel Benchmarks", NASA report RNR-94-007, 1994, and NAS-95-020, 1995.
// Parallelization: H. Jin and others, "The OpenMP Implementation of NAS Parallel Benchmarks", NASA
// report NAS-99-011, 1999.
//
// Synchronization: a time step has two parallel regions. In the first, both triangular sweeps are
// pipelines. Each thread owns a block of rows (y) and goes through the planes (z) in order. Before
// each plane, it spins until its left neighbour has set its flag, and clears that flag. After the
// plane, it spins until its own flag is clear, and sets it. So no thread is more than two planes
// ahead of the next. Neither loop pauses or yields. With T threads, a sweep of a grid of n^3 points
// passes (n-2)(T-1) flags (`waits`). Threads beyond n-2 have no rows and wait at the barrier. The
// first region has four barriers: before, between and after the sweeps, and at its end. The second
// region computes the right-hand side and has three. One reduction follows the last step.
//
// Differences: the flags are C11 atomics, each in cache lines of its own. Two results that change
// nothing are left out: the norm of the last correction, and the check for early convergence, which
// no class reaches. One thread computes the surface integral, outside the timed section.
#include <omp.h>
#include <stdatomic.h>

#include "navier_block.h"

static const double relaxation = 1.2;

// The blocks of one point: those of its three neighbours in this sweep, and its own.
struct blocks {
    block neighbour[3], own;
};

struct flag {
    _Alignas(LINE) atomic_int full;
};

struct ssor {
    struct grid grid;
    struct blocks *blocks; // of one plane
    struct flag *flags;    // one for each row at most
    long waits;
};

// --- right-hand side -----------------------------------------------------------------------------

static void right_hand_side(struct grid *g) {
    int last = g->edge - 1;
    count_region(g, 3);
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int k = 0; k <= last; k++) {
            copy_forcing(g, k);
            derive_flow(g, k);
        }
#pragma omp for schedule(static) nowait
        for (int k = 1; k < last; k++)
            for (int j = 1; j < last; j++) {
                add_fluxes(g, 0, j, k);
                add_dissipation(g, 0, j, k);
            }
#pragma omp for schedule(static)
        for (int k = 1; k < last; k++)
            for (int j = 1; j < last; j++) {
                add_fluxes(g, 1, j, k);
                add_dissipation(g, 1, j, k);
            }
#pragma omp for schedule(static) nowait
        for (int j = 1; j < last; j++)
            for (int k = 1; k < last; k++) {
                add_fluxes(g, 2, j, k);
                add_dissipation(g, 2, j, k);
            }
    }
}

// --- pipeline ------------------------------------------------------------------------------------

// Wait for the left neighbour's flag and clear it. last: the last thread that owns rows.
static void take_from_left(struct flag *flags, int thread, int last) {
    if (thread == 0 || thread > last)
        return;
    while (!atomic_load_explicit(&flags[thread - 1].full, memory_order_acquire))
        ;
    atomic_store_explicit(&flags[thread - 1].full, 0, memory_order_release);
}

// Wait until the thread's own flag is clear and set it.
static void pass_to_right(struct flag *flags, int thread, int last) {
    if (thread >= last)
        return;
    while (atomic_load_explicit(&flags[thread].full, memory_order_acquire))
        ;
    atomic_store_explicit(&flags[thread].full, 1, memory_order_release);
}

static struct blocks *row_blocks(const struct ssor *s, int j) {
    return s->blocks + (long)j * s->grid.edge;
}

// Form the blocks of a row. side: -1 in the lower sweep, whose neighbours come before the point; 1
// in the upper sweep.
INLINE void form_row(struct ssor *s, int side, int j, int k) {
    const struct grid *g = &s->grid;
    const double twice = 2 * g->step * g->second;
    for (int i = 1; i < g->edge - 1; i++) {
        struct blocks *b = row_blocks(s, j) + i;
        const long p = grid_at(g, i, j, k);
        neighbour_block(b->neighbour[0], g, 0, side, p + side * g->stride[0]);
        neighbour_block(b->neighbour[1], g, 1, side, p + side * g->stride[1]);
        neighbour_block(b->neighbour[2], g, 2, side, p + side * g->stride[2]);
        identity_block(b->own);
        add_viscosity(b->own, 0, g->u[p], &g->flow[p], twice);
        add_viscosity(b->own, 1, g->u[p], &g->flow[p], twice);
        add_viscosity(b->own, 2, g->u[p], &g->flow[p], twice);
    }
}

// Solve a row in the order of the sweep: each point needs the results of its neighbours.
INLINE void solve_row(struct ssor *s, int side, int j, int k) {
    struct grid *g = &s->grid;
    for (int n = 1; n < g->edge - 1; n++) {
        const int i = side < 0 ? n : g->edge - 1 - n;
        const long p = grid_at(g, i, j, k);
        struct blocks *b = row_blocks(s, j) + i;
        double *v = g->rhs[p];
        state sum = {0};
        for (int d = 2; d >= 0; d--) {
            const double *other = g->rhs[p + side * g->stride[d]];
            for (int m = 0; m < 5; m++)
                for (int c = 0; c < 5; c++)
                    sum[m] += b->neighbour[d][m][c] * other[c];
        }
        for (int m = 0; m < 5; m++)
            sum[m] = relaxation * sum[m] - (side < 0 ? v[m] : 0);
        solve_block(b->own, sum, 1);
        for (int m = 0; m < 5; m++)
            v[m] = (side < 0 ? 0 : v[m]) - sum[m];
    }
}

// Sweep all planes. The static schedule gives each thread the same rows in each, in order.
INLINE void sweep(struct ssor *s, int side, int thread, int last) {
    const int edge = s->grid.edge;
    for (int plane = 1; plane < edge - 1; plane++) {
        const int k = side < 0 ? plane : edge - 1 - plane;
#pragma omp for schedule(static) nowait
        for (int row = 1; row < edge - 1; row++)
            form_row(s, side, side < 0 ? row : edge - 1 - row, k);
        take_from_left(s->flags, thread, last);
#pragma omp for schedule(static) nowait
        for (int row = 1; row < edge - 1; row++)
            solve_row(s, side, side < 0 ? row : edge - 1 - row, k);
        pass_to_right(s->flags, thread, last);
    }
}

static void lower_sweep(struct ssor *s, int thread, int last) { sweep(s, -1, thread, last); }
static void upper_sweep(struct ssor *s, int thread, int last) { sweep(s, 1, thread, last); }

// --- solver --------------------------------------------------------------------------------------

// Run a time step. Pre and post: grid.rhs and grid.flow belong to grid.u.
static void time_step(struct ssor *s) {
    struct grid *g = &s->grid;
    const int rows = g->edge - 2;
    int team = 1;
    count_region(g, 4);
#pragma omp parallel
    {
        const int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int last = (threads < rows ? threads : rows) - 1;
#pragma omp for schedule(static) nowait
        for (int k = 1; k < g->edge - 1; k++)
            for (int j = 1; j < g->edge - 1; j++)
                scale_row(g, j, k, g->step);
        if (thread <= last)
            atomic_store_explicit(&s->flags[thread].full, 0, memory_order_relaxed);
        if (thread == last)
            team = last + 1;
#pragma omp barrier
        lower_sweep(s, thread, last);
#pragma omp barrier
        upper_sweep(s, thread, last);
#pragma omp barrier
#pragma omp for schedule(static) nowait
        for (int k = 1; k < g->edge - 1; k++)
            for (int j = 1; j < g->edge - 1; j++)
                update_row(g, j, k, 1 / (relaxation * (2 - relaxation)));
    }
    s->waits += 2L * rows * (team - 1);
    right_hand_side(g);
}

// Integrate the pressure over the faces of the box between the points `first` and `last`.
static double surface_integral(const struct grid *g) {
    const int first[3] = {1, 1, 2}, last[3] = {g->edge - 2, g->edge - 3, g->edge - 2};
    double sum = 0;
    for (int d = 0; d < 3; d++) {
        const int x = (d + 1) % 3, y = (d + 2) % 3;
        for (int face = 0; face < 2; face++)
            for (int b = first[y]; b <= last[y]; b++)
                for (int a = first[x]; a <= last[x]; a++) {
                    const long p = g->stride[d] * (face ? last[d] : first[d]) + g->stride[x] * a +
                                   g->stride[y] * b;
                    // Trapezoidal rule: points on an edge of the face count half, corners a
                    // quarter.
                    const double weight = (a == first[x] || a == last[x] ? 0.5 : 1) *
                                          (b == first[y] || b == last[y] ? 0.5 : 1);
                    sum += weight * pressure(g->u[p], &g->flow[p]);
                }
    }
    return sum * g->space * g->space;
}

static const struct {
    int edge, steps;
    double step;
    struct published norms;
    double surface;
} problem[] = {
    {12,
     50,
     0.5,
     {{1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
       1.5029584435994323e-03, 3.4264073155896461e-02},
      {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
       5.8474222595157350e-05, 1.3103347914111294e-03}},
     7.8418928865937083e+00},
    {33,
     300,
     1.5e-3,
     {{0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01,
       0.2826799444189e+02},
      {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01,
       0.1084277417792e+01}},
     0.1161399311023e+02},
    {64,
     250,
     2.0,
     {{7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
       1.7845301160418537e+02, 1.8384760349464247e+03},
      {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00,
       6.7139225687777051e+00, 7.0715315688392578e+01}},
     2.6030925604886277e+01},
    {102,
     250,
     2.0,
     {{3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02,
       7.7812774739425265e+02, 7.3087969592545314e+03},
      {1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01,
       2.5905394567832939e+01, 2.6054907504857413e+02}},
     4.7887162703308227e+01},
};

int main(int argc, char **argv) {
    struct suite s = suite_parse("npb/lu", grid_classes, argc, argv);
    const int edge = problem[s.class_index].edge;
    struct ssor lu = {.grid = grid_new(edge)};
    struct grid *g = &lu.grid;
    lu.blocks = suite_memory(sizeof *lu.blocks * (size_t)(edge * edge));
    lu.flags = suite_memory(sizeof *lu.flags * (size_t)edge);
    g->step = problem[s.class_index].step;
    set_forcing(g, right_hand_side);
    // One step faults all memory in.
    initialize(g, 0);
    right_hand_side(g);
    time_step(&lu);
    do {
        state residual, error;
        initialize(g, 0);
        right_hand_side(g);
        lu.waits = g->regions = g->barriers = 0;
        suite_start(&s);
        for (int step = 0; step < problem[s.class_index].steps; step++)
            time_step(&lu);
        norms(g, 0, residual);
        count_region(g, 1);
        suite_stop(&s);
        norms(g, 1, error);
        verify_norms(&s, residual, error, &problem[s.class_index].norms);
        suite_verify(&s, "the surface integral", surface_integral(g),
                     problem[s.class_index].surface, 1e-8);
        suite_count(&s, "regions", g->regions);
        suite_count(&s, "barriers", g->barriers);
        suite_count(&s, "waits", lu.waits);
    } while (suite_next(&s));
    return suite_report(&s);
}
