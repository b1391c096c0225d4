/* SPDX-License-Identifier: MIT */
// Number the mortar points of ua.c: those of each vertex, and of each edge and face without a
// smaller element on it. The first of the elements that share it numbers its points.
#ifndef LISSOM_WORKLOADS_NPB_UA_NUMBER_H
#define LISSOM_WORKLOADS_NPB_UA_NUMBER_H

#include "ua_mesh.h"

enum { FIRST_EDGE = 8, FIRST_FACE = 20, ENTITIES = 26 };

static int points_in(uint32_t owned) {
    return __builtin_popcount(owned & 0xff) + INNER * __builtin_popcount(owned & 0xfff00) +
           INNER * INNER * __builtin_popcount(owned >> FIRST_FACE);
}

// Return the owner of vertex k of e, as leaf * ENTITIES + entity.
static int vertex_owner(const struct mesh *m, int e, int k) {
    uint32_t at[3];
    for (int d = 0; d < 3; d++)
        at[d] = m->leaf[e].at[d] + (k >> d & 1) * leaf_size(m, e);
    int owner = e * ENTITIES + k;
    for (int around = 0; around < 8; around++) {
        uint32_t cell[3];
        for (int d = 0; d < 3; d++)
            cell[d] = at[d] - 1 + (around >> d & 1);
        int f = leaf_at(m, cell), corner = 1, side[3];
        for (int d = 0; f >= 0 && d < 3; d++) {
            side[d] = at[d] != m->leaf[f].at[d];
            corner &= !side[d] || at[d] == m->leaf[f].at[d] + leaf_size(m, f);
        }
        if (f >= 0 && corner && f * ENTITIES + vertex_number(side) < owner)
            owner = f * ENTITIES + vertex_number(side);
    }
    return owner;
}

// Return the owner of edge k of e; -1 if there is a smaller element on the edge.
static int edge_owner(const struct mesh *m, int e, int k) {
    int side[3], p, q, axis = edge_sides(k, side), owner = e, number = k;
    other_axes(axis, &p, &q);
    for (int around = 1; around < 4; around++) {
        int step[3] = {0}, there[3] = {0};
        step[p] = around & 1 ? 2 * side[p] - 1 : 0;
        step[q] = around & 2 ? 2 * side[q] - 1 : 0;
        there[p] = side[p] ^ (around & 1);
        there[q] = side[q] ^ around >> 1;
        int f = neighbor(m, e, step);
        if (f >= 0 && m->leaf[f].level > m->leaf[e].level)
            return -1;
        if (f >= 0 && f < owner && m->leaf[f].level == m->leaf[e].level) {
            owner = f;
            number = edge_number(axis, there);
        }
    }
    return owner * ENTITIES + FIRST_EDGE + number;
}

// Return the owner of face k of e; -1 if there are smaller elements on the face.
static int face_owner(const struct mesh *m, int e, int k) {
    int step[3] = {0};
    step[k / 2] = k & 1 ? 1 : -1;
    int f = neighbor(m, e, step);
    if (f >= 0 && m->leaf[f].level > m->leaf[e].level)
        return -1;
    if (f >= 0 && f < e && m->leaf[f].level == m->leaf[e].level)
        return f * ENTITIES + FIRST_FACE + (k ^ 1);
    return e * ENTITIES + FIRST_FACE + k;
}

// Store owners in the first number of each entity, the count of owned points in m->first.
static void find_owners(struct mesh *m, int e) {
    struct links *l = &m->links[e];
    l->split_edges = l->split_faces = l->borders = l->owned = 0;
    for (int k = 0; k < ENTITIES; k++) {
        int owner;
        if (k < FIRST_EDGE)
            owner = l->vertex[k] = vertex_owner(m, e, k);
        else if (k < FIRST_FACE)
            owner = l->edge[k - FIRST_EDGE][0] = edge_owner(m, e, k - FIRST_EDGE);
        else
            owner = l->face[k - FIRST_FACE][0] = face_owner(m, e, k - FIRST_FACE);
        l->owned |= (uint32_t)(owner == e * ENTITIES + k) << k;
        if (owner < 0 && k < FIRST_FACE)
            l->split_edges |= 1u << (k - FIRST_EDGE);
        else if (owner < 0)
            l->split_faces |= 1u << (k - FIRST_FACE);
    }
    for (int k = 0; k < 6; k++) {
        uint32_t low = m->leaf[e].at[k / 2];
        int outside = k & 1 ? low + leaf_size(m, e) == 1u << m->finest : low == 0;
        l->borders |= (uint32_t)outside << k;
    }
    m->first[e] = points_in(l->owned);
}

static int first_point(const struct mesh *m, int owner) {
    int e = owner / ENTITIES;
    uint32_t before = (1u << owner % ENTITIES) - 1;
    return (e ? m->first[e - 1] : 0) + points_in(m->links[e].owned & before);
}

static int on_border(const struct links *l, int k) {
    if (k >= FIRST_FACE)
        return l->borders >> (k - FIRST_FACE) & 1;
    int side[3] = {k & 1, k >> 1 & 1, k >> 2 & 1};
    int along = k < FIRST_EDGE ? -1 : edge_sides(k - FIRST_EDGE, side);
    int found = 0;
    for (int d = 0; d < 3; d++)
        found |= d != along && l->borders >> (2 * d + side[d]) & 1;
    return found;
}

static void number_whole(struct mesh *m, int e) {
    struct links *l = &m->links[e];
    for (int k = 0; k < ENTITIES; k++) {
        int points = points_in(1u << k);
        int *id = k < FIRST_EDGE   ? &l->vertex[k]
                  : k < FIRST_FACE ? l->edge[k - FIRST_EDGE]
                                   : l->face[k - FIRST_FACE];
        if (*id < 0)
            continue;
        int first = first_point(m, *id);
        for (int i = 0; i < points; i++) {
            id[i] = first + i;
            if (l->owned >> k & 1)
                m->free[first + i] = !on_border(l, k);
        }
    }
}

// Return the mortar point at (i, j) of a face without smaller neighbors.
static int face_point(const struct links *l, int axis, int side, int i, int j) {
    int p, q, at[3];
    other_axes(axis, &p, &q);
    at[axis] = side;
    at[p] = i / (POINTS - 1);
    at[q] = j / (POINTS - 1);
    int end_i = i % (POINTS - 1) == 0, end_j = j % (POINTS - 1) == 0;
    if (end_i && end_j)
        return l->vertex[vertex_number(at)];
    if (end_j)
        return l->edge[edge_number(p, at)][i - 1];
    if (end_i)
        return l->edge[edge_number(q, at)][j - 1];
    return l->face[2 * axis + side][i - 1 + INNER * (j - 1)];
}

// Number the points of an edge by the two smaller elements on it.
static void number_split_edge(struct mesh *m, int e, int k) {
    int side[3], p, q, axis = edge_sides(k, side);
    other_axes(axis, &p, &q);
    int *id = m->links[e].edge[k];
    for (int half = 0; half < 2; half++)
        for (int around = 1; around < 4; around++) {
            uint32_t cell[3], size = leaf_size(m, e);
            memcpy(cell, m->leaf[e].at, sizeof cell);
            int out[3] = {0}, there[3] = {0};
            out[p] = around & 1;
            out[q] = around >> 1;
            cell[axis] += half * size / 2;
            for (int d = 0; d < 3; d++)
                if (d != axis) {
                    cell[d] += side[d] ? size - 1 + out[d] : (uint32_t)-out[d];
                    there[d] = side[d] ^ out[d];
                }
            int f = leaf_at(m, cell);
            if (f < 0 || m->leaf[f].level <= m->leaf[e].level)
                continue;
            const struct links *small = &m->links[f];
            memcpy(id + 4 * half, small->edge[edge_number(axis, there)], INNER * sizeof *id);
            there[axis] = !half;
            id[INNER] = small->vertex[vertex_number(there)];
        }
}

// Number the points of a face by the four smaller elements on it.
static void number_split_face(struct mesh *m, int e, int k) {
    int p, q, axis = k / 2;
    other_axes(axis, &p, &q);
    uint32_t size = leaf_size(m, e);
    for (int quarter = 0; quarter < 4; quarter++) {
        int low[2] = {4 * (quarter & 1), 4 * (quarter >> 1)};
        uint32_t cell[3];
        cell[axis] = m->leaf[e].at[axis] + (k & 1 ? size : (uint32_t)-1);
        cell[p] = m->leaf[e].at[p] + (quarter & 1) * size / 2;
        cell[q] = m->leaf[e].at[q] + (quarter >> 1) * size / 2;
        const struct links *small = &m->links[leaf_at(m, cell)];
        for (int i = 0; i < POINTS; i++)
            for (int j = 0; j < POINTS; j++) {
                int a = low[0] + i - 1, b = low[1] + j - 1;
                if (a >= 0 && a < FINE_INNER && b >= 0 && b < FINE_INNER)
                    m->links[e].face[k][a + FINE_INNER * b] =
                        face_point(small, axis, !(k & 1), i, j);
            }
    }
}

// Set `id` to the points of an edge, with its ends, by rising coordinates. Returns their number.
static int edge_points(const struct links *l, int axis, const int side[3], int id[FINE]) {
    int at[3] = {side[0], side[1], side[2]}, k = edge_number(axis, side);
    int inner = l->split_edges >> k & 1 ? FINE_INNER : INNER;
    memcpy(id + 1, l->edge[k], (size_t)inner * sizeof *id);
    at[axis] = 0;
    id[0] = l->vertex[vertex_number(at)];
    at[axis] = 1;
    id[inner + 1] = l->vertex[vertex_number(at)];
    return inner + 2;
}

// Set `id` to the points of a face with smaller neighbors.
static void split_face_points(const struct links *l, int k, int id[FINE][FINE]) {
    int p, q, axis = k / 2, side[3] = {0}, line[FINE];
    other_axes(axis, &p, &q);
    for (int b = 0; b < FINE_INNER; b++)
        memcpy(id[b + 1] + 1, l->face[k] + b * FINE_INNER, FINE_INNER * sizeof **id);
    side[axis] = k & 1;
    for (int end = 0; end < 2; end++) {
        side[q] = end;
        edge_points(l, p, side, id[end * (FINE - 1)]);
        side[p] = end;
        edge_points(l, q, side, line);
        for (int b = 0; b < FINE; b++)
            id[b][end * (FINE - 1)] = line[b];
    }
}

// Count the lock acquisitions of one pass over the elements, of each kind.
static void count_locks(struct mesh *m) {
    long sums = 0, guesses = 0, forms = 0;
#pragma omp parallel for reduction(+ : sums, guesses, forms)
    for (int e = 0; e < m->leaves; e++) {
        const struct links *l = &m->links[e];
        forms += 8 + 12 * INNER + 4 * __builtin_popcount(l->split_edges);
        for (int k = 0; k < 6; k++) {
            int split = l->split_faces >> k & 1, p, q;
            forms += split ? FINE_INNER * FINE_INNER : INNER * INNER;
            int edges = 0, side[3] = {0};
            other_axes(k / 2, &p, &q);
            for (int end = 0; end < 2; end++) {
                side[k / 2] = k & 1;
                side[p] = side[q] = end;
                edges += l->split_edges >> edge_number(p, side) & 1;
                edges += l->split_edges >> edge_number(q, side) & 1;
            }
            sums += split ? FINE * FINE : POINTS * POINTS + 4 * edges;
            guesses += split ? 0 : POINTS * POINTS - INNER * edges;
        }
    }
    m->sum_locks = sums;
    m->guess_locks = guesses;
    m->form_locks = forms;
}

static void number_mortars(struct mesh *m) {
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++)
        find_owners(m, e);
    sum_up(m, m->leaves);
    m->mortars = m->first[m->leaves - 1];
    if (m->mortars > m->most_mortars)
        fail("npb/ua: %d mortar points, and room for %d", m->mortars, m->most_mortars);
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++)
        number_whole(m, e);
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++) {
        for (int k = 0; k < 12; k++)
            if (m->links[e].split_edges >> k & 1)
                number_split_edge(m, e, k);
        for (int k = 0; k < 6; k++)
            if (m->links[e].split_faces >> k & 1)
                number_split_face(m, e, k);
    }
    count_locks(m);
    count_regions(m, 4, 0);
}

#endif
