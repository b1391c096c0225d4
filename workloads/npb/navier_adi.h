/* SPDX-License-Identifier: MIT */
// Shared by NPB SP and BT: the right-hand side, loops over the lines of the grid, and main. Both
// solve implicit systems along the lines of x, then y, then z (ADI: alternating directions).
#ifndef LISSOM_WORKLOADS_NPB_NAVIER_ADI_H
#define LISSOM_WORKLOADS_NPB_NAVIER_ADI_H

#include "navier.h"

enum { MAX_EDGE = 102 };

struct adi_problem {
    int edge, steps;
    double step;
    struct published norms;
};

// Compute the right-hand side. The barriers are those of the original. Loops without a barrier in
// between write different points, or divide the same planes in the same way.
static void adi_right_hand_side(struct grid *g) {
    int last = g->edge - 1;
    count_region(g, 5);
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (int k = 0; k <= last; k++)
            derive_flow(g, k);
#pragma omp for schedule(static)
        for (int k = 0; k <= last; k++)
            copy_forcing(g, k);
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
#pragma omp for schedule(static)
        for (int k = 1; k < last; k++)
            for (int j = 1; j < last; j++)
                add_fluxes(g, 2, j, k);
        // Divide the rows of the two planes at either end, then the planes in between.
#pragma omp for schedule(static) nowait
        for (int j = 1; j < last; j++) {
            add_dissipation(g, 2, j, 1);
            add_dissipation(g, 2, j, 2);
            add_dissipation(g, 2, j, last - 2);
            add_dissipation(g, 2, j, last - 1);
        }
#pragma omp for schedule(static)
        for (int k = 3; k < last - 2; k++)
            for (int j = 1; j < last; j++)
                add_dissipation(g, 2, j, k);
#pragma omp for schedule(static) nowait
        for (int k = 1; k < last; k++)
            for (int j = 1; j < last; j++)
                scale_row(g, j, k, g->step);
    }
}

// Call `work` for each pair of inner coordinates. The threads divide the values of `outer`.
static void for_lines(struct grid *g, void (*work)(struct grid *, int inner, int outer)) {
    count_region(g, 1);
#pragma omp parallel for
    for (int outer = 1; outer < g->edge - 1; outer++)
        for (int inner = 1; inner < g->edge - 1; inner++)
            work(g, inner, outer);
}

static void add_row(struct grid *g, int j, int k) { update_row(g, j, k, 1); }

// Run the program. sound: whether time_step needs the speed of sound.
static int adi_main(const char *program, const struct adi_problem *problem, int sound,
                    void (*time_step)(struct grid *), int argc, char **argv) {
    struct suite s = suite_parse(program, grid_classes, argc, argv);
    problem += s.class_index;
    struct grid g = grid_new(problem->edge);
    if (sound)
        g.sound = suite_memory(sizeof *g.sound * (size_t)(g.stride[2] * g.edge));
    g.step = 1;
    set_forcing(&g, adi_right_hand_side);
    g.step = problem->step;
    // One step faults all memory in.
    initialize(&g, 0);
    time_step(&g);
    do {
        state residual, error;
        initialize(&g, 0);
        g.regions = g.barriers = 0;
        suite_start(&s);
        for (int step = 0; step < problem->steps; step++)
            time_step(&g);
        suite_stop(&s);
        suite_count(&s, "regions", g.regions);
        suite_count(&s, "barriers", g.barriers);
        adi_right_hand_side(&g);
        norms(&g, 0, residual);
        for (int m = 0; m < 5; m++)
            residual[m] /= g.step;
        norms(&g, 1, error);
        verify_norms(&s, residual, error, &problem->norms);
    } while (suite_next(&s));
    return suite_report(&s);
}

#endif
