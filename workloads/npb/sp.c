/* SPDX-License-Identifier: MIT */
// NPB SP: an alternating-direction implicit (ADI) solver of the discrete Navier-Stokes equations
// that diagonalizes the Jacobians (Beam and Warming; Pulliam and Chaussee, 1981). Each line of the
// grid gives five scalar pentadiagonal systems: three with the speed of the flow, and one each with
// the speed of sound added and subtracted. Specification: D. Bailey and others, "The NAS Parallel
// Benchmarks", NASA report RNR-94-007, 1994, and NAS-95-020, 1995. Parallelization: H. Jin and
// others, "The OpenMP Implementation of NAS Parallel Benchmarks", NASA report NAS-99-011, 1999.
//
// Synchronization: a time step has nine parallel regions: the right-hand side, four changes of
// variables, three solvers and the update. The first has five barriers and the others one each, at
// their ends: 13 barriers a step. The loops are static. The threads divide the n-2 inner planes of
// a grid of n^3 points: x-y planes, but x-z planes in the z solver. Threads beyond n-2 idle. With
// fewer threads, some have a plane less than others and wait: n-2 is 10, 34, 62 or 100.
//
// Differences: the solver eliminates row by row, one line at a time. The rows of the boundary,
// whose solution is 0, are left out.
#include <omp.h>

#include "navier_adi.h"

static const double root_half = 0.70710678118654752440;

// --- changes of variables: multiply the right-hand side by eigenvectors of the Jacobians ---------

// Convert the conserved variables to the waves in x.
static void to_x(struct grid *g, int j, int k) {
    for (long p = grid_at(g, 1, j, k); p <= grid_at(g, g->edge - 2, j, k); p++) {
        double *r = g->rhs[p];
        const struct flow *f = &g->flow[p];
        const double *v = f->velocity, sound = g->sound[p];
        const double density = r[0], unit = root_half * f->inverse;
        const double t = k2 / (sound * sound) *
                         (f->kinetic * density - v[0] * r[1] - v[1] * r[2] - v[2] * r[3] + r[4]);
        const double along = unit * (v[0] * density - r[1]), both = unit * sound * t;
        const double y = r[2];
        r[0] = density - t;
        r[1] = f->inverse * (r[3] - v[2] * density);
        r[2] = f->inverse * (v[1] * density - y);
        r[3] = both - along;
        r[4] = both + along;
    }
}

// Convert the waves in x to those in y.
static void x_to_y(struct grid *g, int j, int k) {
    for (long p = grid_at(g, 1, j, k); p <= grid_at(g, g->edge - 2, j, k); p++) {
        double *r = g->rhs[p];
        const double one = r[0], turned = root_half * r[2], mean = 0.5 * (r[3] + r[4]);
        r[0] = -r[1];
        r[1] = one;
        r[2] = root_half * (r[3] - r[4]);
        r[3] = mean - turned;
        r[4] = mean + turned;
    }
}

// Convert the waves in y to those in z.
static void y_to_z(struct grid *g, int j, int k) {
    for (long p = grid_at(g, 1, j, k); p <= grid_at(g, g->edge - 2, j, k); p++) {
        double *r = g->rhs[p];
        const double two = r[1], turned = root_half * r[0], mean = 0.5 * (r[3] + r[4]);
        r[0] = root_half * (r[3] - r[4]);
        r[1] = -r[2];
        r[2] = two;
        r[3] = mean - turned;
        r[4] = mean + turned;
    }
}

// Convert the waves in z to the conserved variables.
static void from_z(struct grid *g, int j, int k) {
    for (long p = grid_at(g, 1, j, k); p <= grid_at(g, g->edge - 2, j, k); p++) {
        double *r = g->rhs[p];
        const struct flow *f = &g->flow[p];
        const double *v = f->velocity, density = g->u[p][0], sound = g->sound[p];
        const double acoustic = root_half * density / sound * (r[3] + r[4]);
        const double total = r[2] + acoustic;
        const double along = root_half * density * (r[3] - r[4]);
        const double one = density * r[0], two = density * r[1];
        r[0] = total;
        r[1] = v[0] * total - two;
        r[2] = v[1] * total + one;
        r[3] = v[2] * total + along;
        r[4] = v[1] * one - v[0] * two + f->kinetic * total + acoustic * sound * sound / k2 +
               v[2] * along;
    }
}

// --- solvers -------------------------------------------------------------------------------------

// The points of a line from boundary to boundary.
struct line {
    long start, stride;
    double speed[MAX_EDGE], sound[MAX_EDGE];
    double spread[MAX_EDGE]; // diffusion and the largest viscosity
};

// Rows of a system after elimination: x[n] + next[n] x[n+1] + next2[n] x[n+2] = r[n]
struct system {
    double next[MAX_EDGE], next2[MAX_EDGE];
};

// Eliminate row n of the systems of components `from` to `to`. Their waves travel at the speed of
// the flow plus `side` times that of sound. Pre: the right-hand side is 0 on the boundary.
INLINE void eliminate(const struct grid *g, const struct line *l, struct system *s, int n, int side,
                      int from, int to) {
    const double first = g->step * g->first, second = g->step * g->second;
    const double damp = g->step * dissipation, *factor = fourth_difference(g->edge, n);
    const double wave_before = l->speed[n - 1] + side * l->sound[n - 1];
    const double wave_after = l->speed[n + 1] + side * l->sound[n + 1];
    state *r = &g->rhs[l->start + n * l->stride];
    double before2 = damp * factor[0];
    double before = damp * factor[1] - first * wave_before - second * l->spread[n - 1];
    double here = damp * factor[2] + 1 + 2 * second * l->spread[n];
    double after = damp * factor[3] + first * wave_after - second * l->spread[n + 1];
    double after2 = damp * factor[4];
    if (n > 2) {
        before -= before2 * s->next[n - 2];
        here -= before2 * s->next2[n - 2];
        for (int m = from; m <= to; m++)
            r[0][m] -= before2 * r[-2 * l->stride][m];
    }
    here -= before * s->next[n - 1];
    after -= before * s->next2[n - 1];
    const double inverse = 1 / here;
    s->next[n] = inverse * after;
    s->next2[n] = inverse * after2;
    for (int m = from; m <= to; m++)
        r[0][m] = inverse * (r[0][m] - before * r[-l->stride][m]);
}

INLINE void solve_line(const struct grid *g, int d, long start) {
    const long stride = g->stride[d];
    struct line l;
    struct system flow, faster, slower;
    l.start = start;
    l.stride = stride;
    for (int n = 0; n < g->edge; n++) {
        const long p = start + n * stride;
        l.speed[n] = g->flow[p].velocity[d];
        l.sound[n] = g->sound[p];
        // The report takes the maximum of four sums, which is always this one.
        l.spread[n] = diffusion[d] + k15 * k34 * g->flow[p].inverse;
    }
    flow.next[0] = flow.next2[0] = faster.next[0] = faster.next2[0] = 0;
    slower.next[0] = slower.next2[0] = 0;
    for (int n = 1; n < g->edge - 1; n++) {
        eliminate(g, &l, &flow, n, 0, 0, 2);
        eliminate(g, &l, &faster, n, 1, 3, 3);
        eliminate(g, &l, &slower, n, -1, 4, 4);
    }
    for (int n = g->edge - 3; n > 0; n--) {
        state *r = &g->rhs[start + n * stride];
        const double *r1 = r[stride], *r2 = r[2 * stride];
        for (int m = 0; m < 3; m++)
            r[0][m] -= flow.next[n] * r1[m] + flow.next2[n] * r2[m];
        r[0][3] -= faster.next[n] * r1[3] + faster.next2[n] * r2[3];
        r[0][4] -= slower.next[n] * r1[4] + slower.next2[n] * r2[4];
    }
}

static void solve_x(struct grid *g, int j, int k) { solve_line(g, 0, grid_at(g, 0, j, k)); }
static void solve_y(struct grid *g, int i, int k) { solve_line(g, 1, grid_at(g, i, 0, k)); }
static void solve_z(struct grid *g, int i, int j) { solve_line(g, 2, grid_at(g, i, j, 0)); }

static void time_step(struct grid *g) {
    adi_right_hand_side(g);
    for_lines(g, to_x);
    for_lines(g, solve_x);
    for_lines(g, x_to_y);
    for_lines(g, solve_y);
    for_lines(g, y_to_z);
    for_lines(g, solve_z);
    for_lines(g, from_z);
    for_lines(g, add_row);
}

static const struct adi_problem problem[] = {
    {12,
     100,
     0.015,
     {{2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
       1.5840557224455615e-02, 3.4849040609362460e-02},
      {2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
       1.5750704994480102e-05, 3.4177666183390531e-05}}},
    {36,
     400,
     0.0015,
     {{0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03, 0.2887475409984e-03,
       0.3143611161242e-02},
      {0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04, 0.1128838671535e-04,
       0.1212845639773e-03}}},
    {64,
     400,
     0.0015,
     {{2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179,
       2.1292113035138280},
      {1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
       4.7671093939528255e-05, 1.3621613399213001e-04}}},
    {102,
     400,
     0.001,
     {{0.6903293579998e+02, 0.3095134488084e+02, 0.4103336647017e+02, 0.3864769009604e+02,
       0.5643482272596e+02},
      {0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02, 0.1694479428231e-02,
       0.1847456263981e-01}}},
};

int main(int argc, char **argv) { return adi_main("npb/sp", problem, 1, time_step, argc, argv); }
