/* SPDX-License-Identifier: MIT */
// The diagonal of ua.c's matrix, the preconditioner of its conjugate gradients. At a mortar point,
// it is the sum over the elements around it of the form u'Au of the point's basis function.
#ifndef LISSOM_WORKLOADS_NPB_UA_DIAGONAL_H
#define LISSOM_WORKLOADS_NPB_UA_DIAGONAL_H

#include "ua_transfer.h"

// Forms of an element of side 2: [0] of the Laplacian, [1] of the mass.
struct forms {
    double node[NODES][2];
    double face[FINE_INNER * FINE_INNER][2]; // points of a face with smaller neighbors
    double edge[FINE_INNER][3][2];           // split edges, by the number of split faces at them
    double vertex[8][8][2]; // by masks of axes: split edges along, split faces across
};

static void form_of(const struct tables *t, const double *u, double form[2]) {
    form[0] = form[1] = 0;
    for (int n = 0; n < NODES; n++) {
        int at[3] = {n % POINTS, n / POINTS % POINTS, n / (POINTS * POINTS)};
        double mass = weight[at[0]] * weight[at[1]] * weight[at[2]];
        form[1] += mass * u[n] * u[n];
        for (int d = 0; d < 3; d++)
            for (int k = 0; k < POINTS; k++)
                form[0] += u[n] * u[n + (k - at[d]) * stride[d]] * t->stiff[at[d]][k] * mass /
                           weight[at[d]];
    }
}

// Set the inner nodes of the face across `axis` to the product of two columns of the projection.
static void set_face(const struct tables *t, double *u, int axis, int a, int b) {
    int p, q;
    other_axes(axis, &p, &q);
    for (int i = 0; i < INNER; i++)
        for (int j = 0; j < INNER; j++)
            u[(i + 1) * stride[p] + (j + 1) * stride[q]] = t->project[i][a] * t->project[j][b];
}

static void set_edge(const struct tables *t, double *u, int axis, int a) {
    for (int i = 0; i < INNER; i++)
        u[(i + 1) * stride[axis]] = t->project[i][a];
}

// Compute all forms. By symmetry, each edge has the forms of the one along axis 0 at the origin,
// and each vertex those of the origin.
static void make_forms(const struct tables *t, struct forms *f) {
    for (int n = 0; n < NODES; n++) {
        double u[NODES] = {0};
        u[n] = 1;
        form_of(t, u, f->node[n]);
    }
    for (int n = 0; n < FINE_INNER * FINE_INNER; n++) {
        double u[NODES] = {0};
        set_face(t, u, 2, n % FINE_INNER + 1, n / FINE_INNER + 1);
        form_of(t, u, f->face[n]);
    }
    for (int a = 0; a < FINE_INNER; a++)
        for (int faces = 0; faces < 3; faces++) {
            double u[NODES] = {0};
            set_edge(t, u, 0, a + 1);
            for (int k = 0; k < faces; k++)
                set_face(t, u, 2 - k, a + 1, 0);
            form_of(t, u, f->edge[a][faces]);
        }
    for (int edges = 0; edges < 8; edges++)
        for (int faces = 0; faces < 8; faces++) {
            double u[NODES] = {1};
            for (int d = 0; d < 3; d++) {
                if (edges >> d & 1)
                    set_edge(t, u, d, 0);
                if (faces >> d & 1)
                    set_face(t, u, d, 0, 0);
            }
            form_of(t, u, f->vertex[edges][faces]);
        }
}

static void add_form(omp_lock_t *lock, double *sum, int id, const double form[2],
                     const double scale[2]) {
    add_locked(lock, sum, id, scale[0] * form[0] + scale[1] * form[1]);
}

static void vertex_diagonal(const struct forms *f, const struct links *l, int k,
                            const double scale[2], omp_lock_t *lock, double *sum) {
    int side[3] = {k & 1, k >> 1 & 1, k >> 2}, edges = 0, faces = 0;
    for (int d = 0; d < 3; d++) {
        edges |= (int)(l->split_edges >> edge_number(d, side) & 1) << d;
        faces |= (int)(l->split_faces >> (2 * d + side[d]) & 1) << d;
    }
    add_form(lock, sum, l->vertex[k], f->vertex[edges][faces], scale);
}

static void edge_diagonal(const struct forms *f, const struct links *l, int k,
                          const double scale[2], omp_lock_t *lock, double *sum) {
    int side[3], p, q, axis = edge_sides(k, side);
    other_axes(axis, &p, &q);
    int split = l->split_edges >> k & 1;
    int faces =
        (l->split_faces >> (2 * p + side[p]) & 1) + (l->split_faces >> (2 * q + side[q]) & 1);
    for (int i = 0; i < (split ? FINE_INNER : INNER); i++)
        add_form(lock, sum, l->edge[k][i], split ? f->edge[i][faces] : f->node[i + 1], scale);
}

static void face_diagonal(const struct forms *f, const struct links *l, int k,
                          const double scale[2], omp_lock_t *lock, double *sum) {
    int split = l->split_faces >> k & 1, points = split ? FINE_INNER : INNER;
    for (int n = 0; n < points * points; n++) {
        int node = n % INNER + 1 + POINTS * (n / INNER + 1);
        add_form(lock, sum, l->face[k][n], split ? f->face[n] : f->node[node], scale);
    }
}

// Set the reciprocals of the diagonal, at the nodes inside elements and at mortar points. scale:
// factors of the forms of an element, by its level.
static void make_diagonal(struct mesh *m, const struct forms *f, const double (*scale)[2],
                          omp_lock_t *lock, double *inner, double *mortar) {
#pragma omp parallel
    {
#pragma omp for
        for (int n = 0; n < m->mortars; n++)
            mortar[n] = 0;
#pragma omp for
        for (int e = 0; e < m->leaves; e++) {
            const struct links *l = &m->links[e];
            const double *by = scale[m->leaf[e].level];
            for (int n = 0; n < NODES; n++)
                inner[(size_t)NODES * e + n] = 1 / (by[0] * f->node[n][0] + by[1] * f->node[n][1]);
            for (int k = 0; k < 8; k++)
                vertex_diagonal(f, l, k, by, lock, mortar);
            for (int k = 0; k < 12; k++)
                edge_diagonal(f, l, k, by, lock, mortar);
            for (int k = 0; k < 6; k++)
                face_diagonal(f, l, k, by, lock, mortar);
        }
#pragma omp for
        for (int n = 0; n < m->mortars; n++)
            mortar[n] = 1 / mortar[n];
    }
    count_regions(m, 1, 3);
}

#endif
