/* SPDX-License-Identifier: MIT */
// Transfer between the points of the elements of ua.c and the mortar points. An element adds to a
// shared mortar point under the lock of that point.
#ifndef LISSOM_WORKLOADS_NPB_UA_TRANSFER_H
#define LISSOM_WORKLOADS_NPB_UA_TRANSFER_H

#include "ua_number.h"

static void add_locked(omp_lock_t *lock, double *sum, int id, double value) {
    omp_set_lock(&lock[id]);
    sum[id] += value;
    omp_unset_lock(&lock[id]);
}

// Return the node of an element at the lower end of an edge, or of a face.
static int first_node(const int side[3]) {
    return (POINTS - 1) * (side[0] * stride[0] + side[1] * stride[1] + side[2] * stride[2]);
}

static void edge_from_mortars(const struct tables *t, const struct links *l, int k,
                              const double *mortar, double *u) {
    int side[3], id[FINE], axis = edge_sides(k, side), points = edge_points(l, axis, side, id);
    u += first_node(side);
    for (int i = 1; i < POINTS - 1; i++)
        if (points == POINTS)
            u[i * stride[axis]] = mortar[id[i]];
        else
            for (int a = 0; a < FINE; a++)
                u[i * stride[axis]] += t->project[i - 1][a] * mortar[id[a]];
}

static void split_face_from_mortars(const struct tables *t, const struct links *l, int k,
                                    const double *mortar, double *u) {
    int p, q, axis = k / 2, id[FINE][FINE], side[3] = {0};
    other_axes(axis, &p, &q);
    side[axis] = k & 1;
    split_face_points(l, k, id);
    u += first_node(side);
    for (int b = 0; b < FINE; b++)
        for (int i = 0; i < INNER; i++) {
            double sum = 0;
            for (int a = 0; a < FINE; a++)
                sum += t->project[i][a] * mortar[id[b][a]];
            for (int j = 0; j < INNER; j++)
                u[(i + 1) * stride[p] + (j + 1) * stride[q]] += t->project[j][b] * sum;
        }
}

static void whole_face_from_mortars(const struct links *l, int k, const double *mortar, double *u) {
    int p, q, axis = k / 2, side[3] = {0};
    other_axes(axis, &p, &q);
    side[axis] = k & 1;
    u += first_node(side);
    for (int j = 0; j < INNER; j++)
        for (int i = 0; i < INNER; i++)
            u[(i + 1) * stride[p] + (j + 1) * stride[q]] = mortar[l->face[k][i + INNER * j]];
}

// Set the boundary of each element to the values at the mortar points.
static void from_mortars(struct mesh *m, const struct tables *t, const double *mortar, double *u) {
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++)
        for (int n = 0; n < NODES; n++)
            u[(size_t)NODES * e + n] *= t->inside[n];
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++) {
        const struct links *l = &m->links[e];
        double *v = u + (size_t)NODES * e;
        for (int k = 0; k < 8; k++)
            v[first_node((int[]){k & 1, k >> 1 & 1, k >> 2})] = mortar[l->vertex[k]];
        for (int k = 0; k < 12; k++)
            edge_from_mortars(t, l, k, mortar, v);
        for (int k = 0; k < 6; k++)
            if (l->split_faces >> k & 1)
                split_face_from_mortars(t, l, k, mortar, v);
            else
                whole_face_from_mortars(l, k, mortar, v);
    }
    count_regions(m, 2, 0);
}

// Values of a face for its mortar points. The weight is one third at a vertex, which three faces of
// the element share, and one half on an edge.
struct face_sums {
    double sum[FINE][FINE];
    int id[FINE][FINE]; // -1: no point
};

// Add an edge of the face. Point i is at `at` + i * `next` in the arrays of face_sums.
static void edge_to_mortars(const struct tables *t, const struct links *l, int axis,
                            const int side[3], const double *u, struct face_sums *s, int at,
                            int next) {
    int id[FINE], points = edge_points(l, axis, side, id);
    double *sum = &s->sum[0][0] + at;
    int *to = &s->id[0][0] + at;
    u += first_node(side);
    if (points == POINTS) {
        for (int i = 1; i < POINTS - 1; i++) {
            sum[i * next] = u[i * stride[axis]] / 2;
            to[i * next] = id[i];
        }
        return;
    }
    for (int a = 0; a < FINE; a++) {
        for (int i = 0; i < INNER; i++)
            sum[a * next] += t->project[i][a] * u[(i + 1) * stride[axis]] / 2;
        to[a * next] = id[a];
    }
}

static void face_to_mortars(const struct tables *t, const struct links *l, int k, const double *u,
                            struct face_sums *s) {
    int p, q, axis = k / 2, side[3] = {0};
    other_axes(axis, &p, &q);
    side[axis] = k & 1;
    memset(s->sum, 0, sizeof s->sum);
    memset(s->id, -1, sizeof s->id);
    const double *corner = u + first_node(side);
    if (l->split_faces >> k & 1) {
        split_face_points(l, k, s->id);
        for (int j = 0; j < INNER; j++)
            for (int a = 0; a < FINE; a++) {
                double sum = 0;
                for (int i = 0; i < INNER; i++)
                    sum += t->project[i][a] * corner[(i + 1) * stride[p] + (j + 1) * stride[q]];
                for (int b = 0; b < FINE; b++)
                    s->sum[b][a] += t->project[j][b] * sum;
            }
    } else {
        for (int j = 0; j < INNER; j++)
            for (int i = 0; i < INNER; i++) {
                s->sum[j + 1][i + 1] = corner[(i + 1) * stride[p] + (j + 1) * stride[q]];
                s->id[j + 1][i + 1] = l->face[k][i + INNER * j];
            }
    }
    for (int end = 0; end < 2; end++) {
        side[p] = side[q] = 0;
        side[q] = end;
        edge_to_mortars(t, l, p, side, u, s, end * (FINE - 1) * FINE, 1);
        side[q] = 0;
        side[p] = end;
        edge_to_mortars(t, l, q, side, u, s, end * (FINE - 1), FINE);
    }
    for (int c = 0; c < 4; c++) {
        side[p] = c & 1;
        side[q] = c >> 1;
        int a = side[p] * (FINE - 1), b = side[q] * (FINE - 1);
        s->sum[b][a] += u[first_node(side)] / 3;
        s->id[b][a] = l->vertex[vertex_number(side)];
    }
}

// Add up, at each mortar point, the values of the boundaries of its elements: the transpose of
// from_mortars.
static void to_mortars(struct mesh *m, const struct tables *t, omp_lock_t *lock, const double *u,
                       double *mortar) {
#pragma omp parallel
    {
#pragma omp for
        for (int n = 0; n < m->mortars; n++)
            mortar[n] = 0;
#pragma omp for nowait
        for (int e = 0; e < m->leaves; e++)
            for (int k = 0; k < 6; k++) {
                struct face_sums s;
                face_to_mortars(t, &m->links[e], k, u + (size_t)NODES * e, &s);
                for (int n = 0; n < FINE * FINE; n++)
                    if (s.id[n / FINE][n % FINE] >= 0)
                        add_locked(lock, mortar, s.id[n / FINE][n % FINE],
                                   s.sum[n / FINE][n % FINE]);
            }
    }
    count_regions(m, 1, 1);
}

static void add_guess(omp_lock_t *lock, double *sum, double *shares, int id, double value,
                      double share) {
    omp_set_lock(&lock[id]);
    sum[id] += value * share;
    if (shares)
        shares[id] += share;
    omp_unset_lock(&lock[id]);
}

static void face_guess(const struct links *l, int k, const double *u, omp_lock_t *lock, double *sum,
                       double *shares) {
    int p, q, axis = k / 2, side[3] = {0};
    other_axes(axis, &p, &q);
    side[axis] = k & 1;
    const double *face = u + first_node(side);
    for (int j = 0; j < POINTS; j++)
        for (int i = 0; i < POINTS; i++) {
            int on_p = j % (POINTS - 1) == 0, on_q = i % (POINTS - 1) == 0;
            side[p] = i / (POINTS - 1);
            side[q] = j / (POINTS - 1);
            int edge = on_p + on_q == 1 ? edge_number(on_p ? p : q, side) : -1;
            if (edge < 0 || !(l->split_edges >> edge & 1))
                add_guess(lock, sum, shares, face_point(l, axis, k & 1, i, j),
                          face[i * stride[p] + j * stride[q]], 1.0 / (1 + on_p + on_q));
        }
}

// Add up, at each mortar point, the values of the elements that have it as a node. shares: if not
// NULL, set to the sums of their weights.
static void guess_mortars(struct mesh *m, omp_lock_t *lock, const double *u, double *mortar,
                          double *shares) {
#pragma omp parallel
    {
#pragma omp for
        for (int n = 0; n < m->mortars; n++) {
            mortar[n] = 0;
            if (shares)
                shares[n] = 0;
        }
#pragma omp for nowait
        for (int e = 0; e < m->leaves; e++)
            for (int k = 0; k < 6; k++)
                if (!(m->links[e].split_faces >> k & 1))
                    face_guess(&m->links[e], k, u + (size_t)NODES * e, lock, mortar, shares);
    }
    count_regions(m, 1, 1);
}

#endif
