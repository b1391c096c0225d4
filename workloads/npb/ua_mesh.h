/* SPDX-License-Identifier: MIT */
// The mesh of ua.c, and the numbers of the mortar points between its elements. Spectral elements of
// 5 points in each direction are the leaves of an octree over the unit cube, sorted along the
// Morton curve.
#ifndef LISSOM_WORKLOADS_NPB_UA_MESH_H
#define LISSOM_WORKLOADS_NPB_UA_MESH_H

#include "../suite.h"

enum {
    POINTS = 5,  // Gauss-Lobatto-Legendre points per direction
    NODES = 125, // points of an element; node x + 5 * (y + 5 * z)
    INNER = 3,   // points between the two ends
    FINE = 9,    // points of two half-size neighbors along one edge
    FINE_INNER = 7
};

static const double weight[POINTS] = {0.1, 49.0 / 90, 32.0 / 45, 49.0 / 90, 0.1};
static const int stride[3] = {1, POINTS, POINTS *POINTS};

struct tables {
    double place[POINTS];            // place of a point, in [-1, 1]
    double slope[POINTS][POINTS];    // derivative at a point of each basis polynomial
    double stiff[POINTS][POINTS];    // integral of the product of two derivatives
    double project[INNER][FINE];     // inner points of a long edge from the points of its halves
    double halve[2][POINTS][POINTS]; // points of a half from those of the whole
    double merge[POINTS][POINTS];    // points of the whole from those of the half that has them
    double inside[NODES];            // 0 on the boundary of the element, else 1
};

struct leaf {
    uint32_t at[3]; // lower corner, in cells of the finest level
    uint32_t code;  // place on the Morton curve
    int level;      // an element's side is 2^-level
};

// Mortar points of an element, by rising coordinates. A whole edge has 3, an edge with half-size
// neighbors 7; a whole face 3 * 3, a face with half-size neighbors 7 * 7. Numbers of entities:
// vertex x + 2 y + 4 z; edge 4 * axis + side + 2 * side on the other two axes; face 2 * axis +
// side.
struct links {
    int vertex[8], edge[12][FINE_INNER], face[6][FINE_INNER * FINE_INNER];
    uint32_t split_edges, split_faces; // bit masks: has half-size neighbors
    uint32_t borders;                  // faces on the border of the cube
    uint32_t owned;                    // vertices, edges, faces that this element numbers
};

struct mesh {
    int finest, leaves, most_leaves, mortars, most_mortars;
    struct leaf *leaf, *next_leaf;
    double *heat, *next_heat; // NODES per leaf
    struct links *links;
    int *first, *scratch; // of each leaf: a count, then the sum of counts up to it
    unsigned char *wanted, *held;
    double *free;           // of each mortar point: 0 on the border, where the temperature is 0
    long regions, barriers; // numbers so far; barriers include the ends of regions
    long sum_locks, guess_locks, form_locks; // lock acquisitions of one pass over the elements
};

static double lagrange(const double *at, int n, int which, double x) {
    double y = 1;
    for (int i = 0; i < n; i++)
        if (i != which)
            y *= (x - at[i]) / (at[which] - at[i]);
    return y;
}

// Return the derivative of basis polynomial `j` at point `i`.
static double lagrange_slope(const double *at, int i, int j) {
    double sum = 0;
    for (int skip = 0; skip < POINTS; skip++) {
        if (skip == j)
            continue;
        double y = 1 / (at[j] - at[skip]);
        for (int k = 0; k < POINTS; k++)
            if (k != j && k != skip)
                y *= (at[i] - at[k]) / (at[j] - at[k]);
        sum += y;
    }
    return sum;
}

// Set t->project by the mortar condition: the long edge and its halves have the same integral
// against each polynomial of degree 2, and the same ends.
static void projection(struct tables *t) {
    for (int i = 0; i < INNER; i++)
        for (int half = 0; half < 2; half++)
            for (int j = 0; j < POINTS; j++) {
                double x = (t->place[j] + (half ? 1 : -1)) / 2;
                t->project[i][4 * half + j] +=
                    weight[j] * lagrange(t->place + 1, INNER, i, x) / (2 * weight[i + 1]);
            }
    for (int i = 0; i < INNER; i++) {
        double end = weight[0] / weight[i + 1];
        t->project[i][0] -= end * lagrange(t->place + 1, INNER, i, -1);
        t->project[i][FINE - 1] -= end * lagrange(t->place + 1, INNER, i, 1);
    }
}

static void make_tables(struct tables *t) {
    memset(t, 0, sizeof *t);
    double inner = sqrt(3.0 / 7);
    memcpy(t->place, (double[]){-1, -inner, 0, inner, 1}, sizeof t->place);
    for (int i = 0; i < POINTS; i++) {
        double in_half = 2 * t->place[i] + (i <= POINTS / 2 ? 1 : -1);
        for (int j = 0; j < POINTS; j++) {
            t->slope[i][j] = lagrange_slope(t->place, i, j);
            t->halve[0][i][j] = lagrange(t->place, POINTS, j, (t->place[i] - 1) / 2);
            t->halve[1][i][j] = lagrange(t->place, POINTS, j, (t->place[i] + 1) / 2);
            t->merge[i][j] = lagrange(t->place, POINTS, j, in_half);
        }
    }
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j < POINTS; j++)
            for (int k = 0; k < POINTS; k++)
                t->stiff[i][j] += weight[k] * t->slope[k][i] * t->slope[k][j];
    projection(t);
    for (int n = 0; n < NODES; n++) {
        t->inside[n] = 1;
        for (int d = 0; d < 3; d++)
            if (n / stride[d] % POINTS % (POINTS - 1) == 0)
                t->inside[n] = 0;
    }
}

// Count parallel regions, and the barriers inside them.
static void count_regions(struct mesh *m, int regions, int inner_barriers) {
    m->regions += regions;
    m->barriers += regions + inner_barriers;
}

// Return x with two zero bits between any two bits.
static uint32_t spread_bits(uint32_t x) {
    uint32_t y = 0;
    for (int bit = 0; bit < 10; bit++)
        y |= (x >> bit & 1) << 3 * bit;
    return y;
}

static uint32_t morton(const uint32_t at[3]) {
    return spread_bits(at[0]) | spread_bits(at[1]) << 1 | spread_bits(at[2]) << 2;
}

static uint32_t leaf_size(const struct mesh *m, int e) {
    return 1u << (m->finest - m->leaf[e].level);
}

// Return the leaf that contains a cell of the finest level; -1 outside the cube.
static int leaf_at(const struct mesh *m, const uint32_t cell[3]) {
    for (int d = 0; d < 3; d++)
        if (cell[d] >> m->finest) // true below 0, too
            return -1;
    uint32_t code = morton(cell);
    int low = 0, high = m->leaves;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (m->leaf[middle].code <= code)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Return the leaf at the lower corner of the cube of e's size `step` sizes away, or -1. Its level
// tells whether e's neighbors there are larger, as large, or smaller.
static int neighbor(const struct mesh *m, int e, const int step[3]) {
    uint32_t cell[3];
    for (int d = 0; d < 3; d++)
        cell[d] = m->leaf[e].at[d] + (uint32_t)step[d] * leaf_size(m, e);
    return leaf_at(m, cell);
}

static void other_axes(int axis, int *p, int *q) {
    *p = axis == 0;
    *q = axis == 2 ? 1 : 2;
}

static int vertex_number(const int side[3]) { return side[0] | side[1] << 1 | side[2] << 2; }

static int edge_number(int axis, const int side[3]) {
    int p, q;
    other_axes(axis, &p, &q);
    return 4 * axis + side[p] + 2 * side[q];
}

// Set `side` to the sides of edge `k` on the two axes across it. Returns its axis.
static int edge_sides(int k, int side[3]) {
    int p, q;
    other_axes(k / 4, &p, &q);
    side[k / 4] = 0;
    side[p] = k & 1;
    side[q] = k >> 1 & 1;
    return k / 4;
}

// Turn counts into inclusive prefix sums, in log2(n) parallel loops.
static void sum_up(struct mesh *m, int n) {
    for (int back = 1; back < n; back *= 2) {
#pragma omp parallel for
        for (int i = 0; i < n; i++)
            m->scratch[i] = m->first[i] + (i >= back ? m->first[i - back] : 0);
        count_regions(m, 1, 0);
        int *swap = m->first;
        m->first = m->scratch;
        m->scratch = swap;
    }
}

#endif
