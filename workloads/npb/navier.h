/* SPDX-License-Identifier: MIT */
// Shared by NPB LU, SP and BT: the compressible Navier-Stokes equations on the unit cube, their
// discretization, the exact solution, and the norms that verification compares. Specification: D.
// Bailey and others, "The NAS Parallel Benchmarks", NASA report RNR-94-007, 1994, section 3.
//
// The discretization and its constants are the same for the three directions, up to the order of
// the momenta and the artificial diffusion. Functions of one direction take its number: 0 for x, 1
// for y, 2 for z. Callers pass a literal, so the compiler makes a version of each.
#ifndef LISSOM_WORKLOADS_NPB_NAVIER_H
#define LISSOM_WORKLOADS_NPB_NAVIER_H

#include "../suite.h"

#define INLINE static inline __attribute__((always_inline))

// k1 to k5 of the report: k34 is k3 k4, and so on.
static const double k1 = 1.4, k2 = 0.4, k34 = 0.1 * 1.0, k15 = 1.4 * 1.4;

static const double diffusion[3] = {0.75, 0.75, 1.0};
static const double dissipation = 0.25; // a quarter of the largest diffusion

// Density, momentum in x, y and z, and energy. All are per volume.
typedef double state[5];

// Quantities derived from the state of a point.
struct flow {
    double inverse; // 1 / density
    double velocity[3];
    double kinetic; // energy, per mass
};

struct grid {
    int edge; // points; both ends are boundary
    long stride[3];
    double space;         // distance of neighbours
    double first, second; // 1 / (2 space) and 1 / space^2: factors of the central differences
    double step;          // time step
    state *u, *rhs, *forcing;
    struct flow *flow;
    double *sound; // speed of sound; NULL: not needed
    long regions, barriers;
};

struct published {
    state residual, error; // root mean squares
};

static const char *const grid_classes[] = {"S", "W", "A", "B", NULL};

// Rows and planes have an odd number of points, to spread them over the sets of caches.
static struct grid grid_new(int edge) {
    long row = edge | 1, points = row * row * edge;
    struct grid g = {.edge = edge, .stride = {1, row, row * row}, .space = 1.0 / (edge - 1)};
    g.first = 1 / (2 * g.space);
    g.second = 1 / (g.space * g.space);
    g.u = suite_memory(sizeof *g.u * (size_t)points);
    g.rhs = suite_memory(sizeof *g.rhs * (size_t)points);
    g.forcing = suite_memory(sizeof *g.forcing * (size_t)points);
    g.flow = suite_memory(sizeof *g.flow * (size_t)points);
    return g;
}

INLINE long grid_at(const struct grid *g, int i, int j, int k) {
    return i + g->stride[1] * j + g->stride[2] * k;
}

static void count_region(struct grid *g, int barriers) {
    g->regions++;
    g->barriers += barriers;
}

// --- exact solution and initial values -----------------------------------------------------------

// Set `u` to the exact solution. Pre: 0 <= at[d] <= 1.
static void exact_solution(const double *at, double *u) {
    // Columns: the constant, then the factors of x, y, z, of their squares, cubes and fourth
    // powers.
    static const double c[5][13] = {
        {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
        {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
        {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
        {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
        {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2}};
    for (int m = 0; m < 5; m++) {
        u[m] = c[m][0];
        for (int d = 0; d < 3; d++) {
            double x = at[d];
            u[m] += x * (c[m][1 + d] + x * (c[m][4 + d] + x * (c[m][7 + d] + x * c[m][10 + d])));
        }
    }
}

static int on_boundary(const struct grid *g, int i, int j, int k) {
    int last = g->edge - 1;
    return i == 0 || j == 0 || k == 0 || i == last || j == last || k == last;
}

// Interpolate between the exact solutions on the six faces.
static void interpolate_faces(const double *at, double *u) {
    double product[5] = {1, 1, 1, 1, 1};
    for (int d = 0; d < 3; d++) {
        double low[3], high[3];
        state from, to;
        memcpy(low, at, sizeof low);
        memcpy(high, at, sizeof high);
        low[d] = 0;
        high[d] = 1;
        exact_solution(low, from);
        exact_solution(high, to);
        for (int m = 0; m < 5; m++)
            product[m] *= 1 - ((1 - at[d]) * from[m] + at[d] * to[m]);
    }
    for (int m = 0; m < 5; m++)
        u[m] = 1 - product[m];
}

// Set `u` to its initial values, or to the exact solution everywhere.
static void initialize(struct grid *g, int exact) {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < g->edge; k++)
        for (int j = 0; j < g->edge; j++)
            for (int i = 0; i < g->edge; i++) {
                const double at[3] = {i * g->space, j * g->space, k * g->space};
                double *u = g->u[grid_at(g, i, j, k)];
                if (exact || on_boundary(g, i, j, k))
                    exact_solution(at, u);
                else
                    interpolate_faces(at, u);
            }
}

// Make the exact solution steady: its right-hand side becomes 0. right_hand_side: computes grid.rhs
// from grid.u and the forcing. Pre: the forcing is 0.
static void set_forcing(struct grid *g, void (*right_hand_side)(struct grid *)) {
    size_t points = (size_t)(g->stride[2] * g->edge);
    initialize(g, 1);
    right_hand_side(g);
    for (size_t p = 0; p < points; p++)
        for (int m = 0; m < 5; m++)
            g->forcing[p][m] = -g->rhs[p][m];
}

// --- spatial operator ----------------------------------------------------------------------------

static void derive_flow(struct grid *g, int k) {
    for (int j = 0; j < g->edge; j++) {
        long start = grid_at(g, 0, j, k);
        for (long p = start; p < start + g->edge; p++) {
            const double *u = g->u[p];
            struct flow *f = &g->flow[p];
            f->inverse = 1 / u[0];
            f->velocity[0] = u[1] * f->inverse;
            f->velocity[1] = u[2] * f->inverse;
            f->velocity[2] = u[3] * f->inverse;
            f->kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) * f->inverse * f->inverse;
            if (g->sound)
                g->sound[p] = sqrt(k1 * k2 * (u[4] * f->inverse - f->kinetic));
        }
    }
}

static void copy_forcing(struct grid *g, int k) {
    memcpy(g->rhs[grid_at(g, 0, 0, k)], g->forcing[grid_at(g, 0, 0, k)],
           sizeof *g->rhs * (size_t)g->stride[2]);
}

INLINE double pressure(const double *u, const struct flow *f) {
    return k2 * (u[4] - u[0] * f->kinetic);
}

INLINE double bend(double before, double here, double after) { return before - 2 * here + after; }

// Add the convection, diffusion and viscosity of one direction to a row's right-hand side.
INLINE void add_fluxes(struct grid *g, int d, int j, int k) {
    const double first = g->first, second = g->second, viscosity = k34 * second;
    const long s = g->stride[d], start = grid_at(g, 0, j, k);
    for (long p = start + 1; p < start + g->edge - 1; p++) {
        const double *a = g->u[p - s], *u = g->u[p], *z = g->u[p + s];
        const struct flow *fa = &g->flow[p - s], *f = &g->flow[p], *fz = &g->flow[p + s];
        const double va = fa->velocity[d], v = f->velocity[d], vz = fz->velocity[d];
        const double pa = pressure(a, fa), pz = pressure(z, fz);
        const double ea = a[4] * fa->inverse, e = u[4] * f->inverse, ez = z[4] * fz->inverse;
        // Add up in a local: clang 14 vectorizes repeated additions to grid.rhs wrongly.
        state r;
        for (int m = 0; m < 5; m++)
            r[m] = diffusion[d] * second * bend(a[m], u[m], z[m]) - first * (z[m] * vz - a[m] * va);
        for (int m = 0; m < 3; m++)
            r[1 + m] += viscosity * bend(fa->velocity[m], f->velocity[m], fz->velocity[m]);
        r[1 + d] += viscosity / 3 * bend(va, v, vz) - first * (pz - pa);
        r[4] += viscosity * ((1 - k15) * bend(fa->kinetic, f->kinetic, fz->kinetic) +
                             bend(va * va, v * v, vz * vz) / 6 + k15 * bend(ea, e, ez)) -
                first * (pz * vz - pa * va);
        for (int m = 0; m < 5; m++)
            g->rhs[p][m] += r[m];
    }
}

// Return the factors of the fourth difference at point `at` of a line, for the neighbours at -2 to
// +2. A neighbour with a factor of 0 may lie outside the grid.
INLINE const double *fourth_difference(int edge, int at) {
    static const double factor[5][5] = {{0, 0, 5, -4, 1},
                                        {0, -4, 6, -4, 1},
                                        {1, -4, 6, -4, 1},
                                        {1, -4, 6, -4, 0},
                                        {1, -4, 5, 0, 0}};
    return factor[at < 3 ? at - 1 : at < edge - 3 ? 2 : at - edge + 6];
}

// Subtract the artificial dissipation of one direction from a row's right-hand side.
INLINE void add_dissipation(struct grid *g, int d, int j, int k) {
    for (int i = 1; i < g->edge - 1; i++) {
        const double *factor = fourth_difference(g->edge, d == 0 ? i : d == 1 ? j : k);
        const long p = grid_at(g, i, j, k), s = g->stride[d];
        const double *u = g->u[p], *before = g->u[p - s], *after = g->u[p + s];
        const double *before2 = factor[0] != 0 ? g->u[p - 2 * s] : u;
        const double *after2 = factor[4] != 0 ? g->u[p + 2 * s] : u;
        double *r = g->rhs[p];
        for (int m = 0; m < 5; m++)
            r[m] -= dissipation * (factor[0] * before2[m] + factor[1] * before[m] +
                                   factor[2] * u[m] + factor[3] * after[m] + factor[4] * after2[m]);
    }
}

// Multiply the inner points of a row's right-hand side.
static void scale_row(struct grid *g, int j, int k, double factor) {
    for (long p = grid_at(g, 1, j, k); p <= grid_at(g, g->edge - 2, j, k); p++)
        for (int m = 0; m < 5; m++)
            g->rhs[p][m] *= factor;
}

// Add a multiple of the right-hand side to the inner points of a row.
static void update_row(struct grid *g, int j, int k, double factor) {
    for (long p = grid_at(g, 1, j, k); p <= grid_at(g, g->edge - 2, j, k); p++)
        for (int m = 0; m < 5; m++)
            g->u[p][m] += factor * g->rhs[p][m];
}

// --- verification --------------------------------------------------------------------------------

// Compute root mean squares over the inner points: of the right-hand side, or of the error of `u`.
static void norms(const struct grid *g, int error, double *norm) {
    double sum[5] = {0};
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int k = 1; k < g->edge - 1; k++)
        for (int j = 1; j < g->edge - 1; j++)
            for (int i = 1; i < g->edge - 1; i++) {
                const double at[3] = {i * g->space, j * g->space, k * g->space};
                long p = grid_at(g, i, j, k);
                state exact;
                if (error)
                    exact_solution(at, exact);
                for (int m = 0; m < 5; m++) {
                    double value = error ? g->u[p][m] - exact[m] : g->rhs[p][m];
                    sum[m] += value * value;
                }
            }
    for (int m = 0; m < 5; m++)
        norm[m] = sqrt(sum[m] / pow(g->edge - 2, 3));
}

static void verify_norms(struct suite *s, const double *residual, const double *error,
                         const struct published *published) {
    for (int m = 0; m < 5; m++) {
        char what[32];
        snprintf(what, sizeof what, "residual norm %d", m + 1);
        suite_verify(s, what, residual[m], published->residual[m], 1e-8);
        snprintf(what, sizeof what, "error norm %d", m + 1);
        suite_verify(s, what, error[m], published->error[m], 1e-8);
    }
}

#endif
