/* SPDX-License-Identifier: MIT */
// A time step of ua.c: convection and the heat source by one Runge-Kutta step of 4th order in each
// element, then diffusion by conjugate gradients over all nodes and mortar points.
#ifndef LISSOM_WORKLOADS_NPB_UA_SOLVER_H
#define LISSOM_WORKLOADS_NPB_UA_SOLVER_H

#include "ua_adapt.h"
#include "ua_diagonal.h"

enum { ITERATIONS = 10 };

static const double velocity = 3, diffusivity = 0.005;

// One value for each node of the elements, and one for each mortar point.
struct field {
    double *node, *mortar;
};

struct solver {
    struct mesh m;
    struct tables t;
    struct forms f;
    struct source source; // source_at sets its center
    double time, step;
    double scale[16][2]; // factors of forms, by the level of the element
    double *rhs, *guess, *shares, *start;
    struct field residual, direction, image, change, diagonal;
    omp_lock_t *lock; // one for each mortar point
    long locks;
};

static void source_at(struct source *s, double time) {
    const double start[3] = {3.0 / 7, 2.0 / 7, 2.0 / 7};
    for (int d = 0; d < 3; d++)
        s->center[d] = start[d] + velocity * time;
}

// Compute the time derivative of the temperature by convection and the source.
static void derive(const struct solver *v, int e, const double *u, const struct source *s,
                   double *out) {
    const struct leaf *l = &v->m.leaf[e];
    double half = ldexp(1, -l->level - 1), cell = ldexp(1, -v->m.finest), square[3][POINTS];
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < POINTS; i++) {
            double away = l->at[d] * cell + (v->t.place[i] + 1) * half - s->center[d];
            square[d][i] = away * away;
        }
    for (int k = 0; k < POINTS; k++)
        for (int j = 0; j < POINTS; j++)
            for (int i = 0; i < POINTS; i++) {
                double away = square[0][i] + square[1][j] + square[2][k], slope = 0;
                int n = i + POINTS * (j + POINTS * k);
                for (int c = 0; c < POINTS; c++)
                    slope += v->t.slope[i][c] * u[n + (c - i)] +
                             v->t.slope[j][c] * u[n + (c - j) * POINTS] +
                             v->t.slope[k][c] * u[n + (c - k) * POINTS * POINTS];
                out[n] = -velocity * slope / half;
                if (away <= s->radius * s->radius)
                    out[n] += cos(M_PI * sqrt(away) / s->radius) + 1;
            }
}

static void clear_border(const struct links *l, double *u) {
    for (int n = 0; l->borders && n < NODES; n++)
        for (int d = 0; d < 3; d++) {
            int i = n / stride[d] % POINTS;
            if ((i == 0 && l->borders >> 2 * d & 1) ||
                (i == POINTS - 1 && l->borders >> (2 * d + 1) & 1))
                u[n] = 0;
        }
}

// Convect. Stores the right-hand side of the diffusion equation in `rhs`, and a guess.
static void convect(struct solver *v, int mesh_changed) {
    struct mesh *m = &v->m;
    struct source at[3] = {v->source, v->source, v->source};
    for (int i = 0; i < 3; i++)
        source_at(&at[i], v->time + i * v->step / 2);
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++) {
        static const int when[4] = {0, 1, 1, 2};
        static const double part[4] = {1, 2, 2, 1};
        double *u = m->heat + (size_t)NODES * e, slope[NODES], trial[NODES], sum[NODES] = {0};
        double half = ldexp(1, -m->leaf[e].level - 1), mass = half * half * half;
        memcpy(trial, u, sizeof trial);
        for (int stage = 0; stage < 4; stage++) {
            derive(v, e, trial, &at[when[stage]], slope);
            double ahead = stage == 2 ? v->step : v->step / 2;
            for (int n = 0; n < NODES; n++) {
                sum[n] += part[stage] * slope[n] / 6;
                trial[n] = u[n] + ahead * slope[n];
            }
        }
        clear_border(&m->links[e], sum);
        for (int n = 0; n < NODES; n++) {
            v->rhs[(size_t)NODES * e + n] = mass * v->f.node[n][1] * (u[n] / v->step + sum[n]);
            u[n] += v->step * sum[n];
        }
    }
    guess_mortars(m, v->lock, m->heat, v->guess, mesh_changed ? v->shares : NULL);
#pragma omp parallel for
    for (int n = 0; n < m->mortars; n++)
        v->guess[n] /= v->shares[n];
    count_regions(m, 2, 0);
    v->locks += m->guess_locks;
}

// out = A u in one element: diffusion, and mass over the time step.
static void apply(const struct solver *v, int e, const double *u, double *out) {
    const double *scale = v->scale[v->m.leaf[e].level];
    for (int k = 0; k < POINTS; k++)
        for (int j = 0; j < POINTS; j++)
            for (int i = 0; i < POINTS; i++) {
                int n = i + POINTS * (j + POINTS * k);
                double x = 0, y = 0, z = 0;
                for (int c = 0; c < POINTS; c++) {
                    x += v->t.stiff[i][c] * u[n + (c - i)];
                    y += v->t.stiff[j][c] * u[n + (c - j) * POINTS];
                    z += v->t.stiff[k][c] * u[n + (c - k) * POINTS * POINTS];
                }
                double flow = x * weight[j] * weight[k] + y * weight[i] * weight[k] +
                              z * weight[i] * weight[j];
                out[n] = scale[0] * flow + scale[1] * v->f.node[n][1] * u[n];
            }
}

static void apply_all(struct solver *v, const double *u, double *out) {
#pragma omp parallel for
    for (int e = 0; e < v->m.leaves; e++)
        apply(v, e, u + (size_t)NODES * e, out + (size_t)NODES * e);
    count_regions(&v->m, 1, 0);
}

static void clear_borders(struct solver *v, double *u) {
#pragma omp parallel for
    for (int e = 0; e < v->m.leaves; e++)
        clear_border(&v->m.links[e], u + (size_t)NODES * e);
    count_regions(&v->m, 1, 0);
}

static void clear(struct solver *v, double *u, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        u[i] = 0;
    count_regions(&v->m, 1, 0);
}

// u += a x
static void add(struct solver *v, double *u, const double *x, double a, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        u[i] += a * x[i];
    count_regions(&v->m, 1, 0);
}

// u = a u + x
static void blend(struct solver *v, double *u, const double *x, double a, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        u[i] = a * u[i] + x[i];
    count_regions(&v->m, 1, 0);
}

// out = residual / diagonal. Returns the product of `out` and residual.
static double precondition(struct solver *v, struct field out) {
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
#pragma omp for nowait
        for (int e = 0; e < v->m.leaves; e++)
            for (int i = 0; i < NODES; i++) {
                size_t n = (size_t)NODES * e + i;
                out.node[n] = v->diagonal.node[n] * v->residual.node[n];
                sum += v->residual.node[n] * out.node[n] * v->t.inside[i];
            }
#pragma omp for nowait
        for (int n = 0; n < v->m.mortars; n++) {
            out.mortar[n] = v->diagonal.mortar[n] * v->residual.mortar[n];
            sum += v->residual.mortar[n] * out.mortar[n];
        }
    }
    count_regions(&v->m, 1, 0);
    return sum;
}

// Return the product of the direction and its image. Clears the image on the border.
static double curvature(struct solver *v) {
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
#pragma omp for nowait
        for (int e = 0; e < v->m.leaves; e++)
            for (int i = 0; i < NODES; i++) {
                size_t n = (size_t)NODES * e + i;
                sum += v->direction.node[n] * v->image.node[n] * v->t.inside[i];
            }
#pragma omp for nowait
        for (int n = 0; n < v->m.mortars; n++) {
            v->image.mortar[n] *= v->m.free[n];
            sum += v->direction.mortar[n] * v->image.mortar[n];
        }
    }
    count_regions(&v->m, 1, 0);
    return sum;
}

static void to_mortars_of(struct solver *v, const double *u, double *mortar) {
    to_mortars(&v->m, &v->t, v->lock, u, mortar);
    v->locks += v->m.sum_locks;
}

// Run ten iterations from the residual; the solution is in `change`.
static void conjugate_gradients(struct solver *v) {
    long nodes = (long)NODES * v->m.leaves, mortars = v->m.mortars;
    clear(v, v->change.node, nodes);
    clear(v, v->change.mortar, mortars);
    double product = precondition(v, v->direction);
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        if (iteration > 0) {
            double before = product;
            product = precondition(v, v->image);
            blend(v, v->direction.node, v->image.node, product / before, nodes);
            blend(v, v->direction.mortar, v->image.mortar, product / before, mortars);
        }
        from_mortars(&v->m, &v->t, v->direction.mortar, v->direction.node);
        apply_all(v, v->direction.node, v->image.node);
        to_mortars_of(v, v->image.node, v->image.mortar);
        clear_borders(v, v->image.node);
        double length = product / curvature(v);
        add(v, v->change.node, v->direction.node, length, nodes);
        add(v, v->change.mortar, v->direction.mortar, length, mortars);
        add(v, v->residual.node, v->image.node, -length, nodes);
        add(v, v->residual.mortar, v->image.mortar, -length, mortars);
    }
    from_mortars(&v->m, &v->t, v->change.mortar, v->change.node);
}

static void diffuse(struct solver *v, int mesh_changed) {
    struct mesh *m = &v->m;
    long nodes = (long)NODES * m->leaves;
    from_mortars(m, &v->t, v->guess, m->heat);
    v->residual.node = v->rhs;
#pragma omp parallel
    {
#pragma omp for
        for (int e = 0; e < m->leaves; e++)
            apply(v, e, m->heat + (size_t)NODES * e, v->start + (size_t)NODES * e);
#pragma omp for
        for (long n = 0; n < nodes; n++)
            v->rhs[n] -= v->start[n];
    }
    to_mortars_of(v, v->rhs, v->residual.mortar);
    clear_borders(v, v->rhs);
#pragma omp parallel for
    for (int n = 0; n < m->mortars; n++)
        v->residual.mortar[n] *= m->free[n];
    if (mesh_changed) {
        make_diagonal(m, &v->f, v->scale, v->lock, v->diagonal.node, v->diagonal.mortar);
        v->locks += m->form_locks;
    }
    conjugate_gradients(v);
    add(v, m->heat, v->change.node, 1, nodes);
    count_regions(m, 2, 2);
}

// Return the integral of the temperature over the cube.
static double total_heat(const struct solver *v) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int e = 0; e < v->m.leaves; e++) {
        double half = ldexp(1, -v->m.leaf[e].level - 1), element = 0;
        for (int n = 0; n < NODES; n++)
            element += v->m.heat[(size_t)NODES * e + n] * v->f.node[n][1];
        sum += element * half * half * half;
    }
    return sum;
}

#endif
