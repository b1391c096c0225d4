/* SPDX-License-Identifier: MIT */
// Mesh adaptation of ua.c: halve each element that the heat source touches, down to the finest
// level, and merge eight siblings that it has left. Neighbors across a face or an edge differ by at
// most one level.
#ifndef LISSOM_WORKLOADS_NPB_UA_ADAPT_H
#define LISSOM_WORKLOADS_NPB_UA_ADAPT_H

#include "ua_mesh.h"

struct source {
    double center[3], radius;
};

static int touches(const struct mesh *m, int e, const struct source *s) {
    double cell = ldexp(1, -m->finest), square = 0;
    for (int d = 0; d < 3; d++) {
        double low = m->leaf[e].at[d] * cell, high = low + leaf_size(m, e) * cell;
        double away = fmax(0, fmax(low - s->center[d], s->center[d] - high));
        square += away * away;
    }
    return square < s->radius * s->radius;
}

// Return e's neighbor `i` of the 27 cubes around it; -1 unless it is across a face or an edge, and
// inside.
static int side_neighbor(const struct mesh *m, int e, int i) {
    int step[3] = {i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
    int axes = abs(step[0]) + abs(step[1]) + abs(step[2]);
    return axes == 1 || axes == 2 ? neighbor(m, e, step) : -1;
}

// Apply one matrix per direction to an element.
static void apply_3d(const double (*const by[3])[POINTS], const double *from, double *to) {
    double work[2][NODES];
    const double *in = from;
    for (int d = 0; d < 3; d++) {
        double *out = d == 2 ? to : work[d];
        for (int n = 0; n < NODES; n++) {
            int i = n / stride[d] % POINTS, line = n - i * stride[d];
            double sum = 0;
            for (int k = 0; k < POINTS; k++)
                sum += by[d][i][k] * in[line + k * stride[d]];
            out[n] = sum;
        }
        in = out;
    }
}

// Interpolate the temperature of one of the eight children of an element.
static void halve(const struct tables *t, const double *whole, int child, double *half) {
    const double(*const by[3])[POINTS] = {t->halve[child & 1], t->halve[child >> 1 & 1],
                                          t->halve[child >> 2]};
    apply_3d(by, whole, half);
}

// Interpolate the parent's temperature: each point from the sibling that contains it.
static void merge(const struct tables *t, const double *siblings, double *whole) {
    for (int n = 0; n < NODES; n++) {
        int i = n % POINTS, j = n / POINTS % POINTS, k = n / (POINTS * POINTS);
        const double *u = siblings + NODES * ((i > 2) + 2 * (j > 2) + 4 * (k > 2));
        double sum = 0;
        for (int c = 0; c < POINTS; c++)
            for (int b = 0; b < POINTS; b++)
                for (int a = 0; a < POINTS; a++)
                    sum += t->merge[i][a] * t->merge[j][b] * t->merge[k][c] *
                           u[a + POINTS * (b + POINTS * c)];
        whole[n] = sum;
    }
}

static void fill_child(const struct mesh *m, int e, int child, struct leaf *l) {
    *l = m->leaf[e];
    l->level++;
    for (int d = 0; d < 3; d++)
        l->at[d] += (uint32_t)(child >> d & 1) * leaf_size(m, e) / 2;
    l->code = morton(l->at);
}

// Rebuild the list of leaves. Pre: m->first has the sums of the numbers of leaves that each leaf
// becomes: 8, 1, or 0 for the last seven of eight siblings that merge.
static void rebuild(struct mesh *m, const struct tables *t) {
    int next = m->first[m->leaves - 1];
    if (next > m->most_leaves)
        fail("npb/ua: %d elements, and room for %d", next, m->most_leaves);
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++) {
        int at = e ? m->first[e - 1] : 0, count = m->first[e] - at;
        int merged = count == 1 && e + 1 < m->leaves && m->first[e + 1] == m->first[e];
        if (count == 8) {
            for (int child = 0; child < 8; child++) {
                fill_child(m, e, child, &m->next_leaf[at + child]);
                halve(t, m->heat + (size_t)NODES * e, child,
                      m->next_heat + (size_t)NODES * (at + child));
            }
        } else if (merged) {
            m->next_leaf[at] = m->leaf[e];
            m->next_leaf[at].level--;
            merge(t, m->heat + (size_t)NODES * e, m->next_heat + (size_t)NODES * at);
        } else if (count == 1) {
            m->next_leaf[at] = m->leaf[e];
            memcpy(m->next_heat + (size_t)NODES * at, m->heat + (size_t)NODES * e,
                   NODES * sizeof *m->heat);
        }
    }
    count_regions(m, 1, 0);
    struct leaf *leaf = m->leaf;
    double *heat = m->heat;
    m->leaf = m->next_leaf;
    m->heat = m->next_heat;
    m->next_leaf = leaf;
    m->next_heat = heat;
    m->leaves = next;
}

// Mark larger neighbors of wanted elements as wanted too. Returns whether any was new.
static int spread_wanted(struct mesh *m) {
    int changed = 0;
#pragma omp parallel for reduction(| : changed)
    for (int e = 0; e < m->leaves; e++) {
        unsigned char wanted, already;
#pragma omp atomic read
        wanted = m->wanted[e];
        if (!wanted)
            continue;
        m->held[e] = 0;
        for (int i = 0; i < 27; i++) {
            int f = side_neighbor(m, e, i);
            if (f < 0 || m->leaf[f].level >= m->leaf[e].level)
                continue;
            m->held[e] = 1;
#pragma omp atomic read
            already = m->wanted[f];
            if (!already) {
#pragma omp atomic write
                m->wanted[f] = 1;
                changed = 1;
            }
        }
    }
    count_regions(m, 1, 0);
    return changed;
}

// Halve the elements that touch the source, once. Returns the number of halved elements.
static int refine(struct mesh *m, const struct tables *t, const struct source *s) {
    int found = 0;
#pragma omp parallel for reduction(| : found)
    for (int e = 0; e < m->leaves; e++) {
        m->wanted[e] = m->leaf[e].level < m->finest && touches(m, e, s);
        m->held[e] = 0;
        found |= m->wanted[e];
    }
    count_regions(m, 1, 0);
    if (!found)
        return 0;
    while (spread_wanted(m))
        ;
    // An element with a larger neighbor waits for the next round: the neighbor comes first.
#pragma omp parallel for
    for (int e = 0; e < m->leaves; e++)
        m->first[e] = m->wanted[e] && !m->held[e] ? 8 : 1;
    count_regions(m, 1, 0);
    sum_up(m, m->leaves);
    int halved = (m->first[m->leaves - 1] - m->leaves) / 7;
    rebuild(m, t);
    return halved;
}

// Return whether a leaf is one of eight sibling leaves that may all be merged. *child: its number
// among them.
static int can_merge(const struct mesh *m, int e, int *child) {
    const struct leaf *l = &m->leaf[e];
    if (!l->level)
        return 0;
    int shift = m->finest - l->level;
    *child = (int)(l->code >> 3 * shift & 7);
    int head = e - *child;
    if (head < 0 || head + 8 > m->leaves)
        return 0;
    int all = 1;
    for (int k = 0; k < 8; k++)
        all &= m->leaf[head + k].level == l->level && m->wanted[head + k];
    return all;
}

// Merge siblings that neither the source nor a smaller neighbor needs, once. Returns the number of
// merged elements.
static int coarsen(struct mesh *m, const struct tables *t, const struct source *s) {
    int found = 0;
#pragma omp parallel for reduction(| : found)
    for (int e = 0; e < m->leaves; e++) {
        int want = !touches(m, e, s);
        for (int i = 0; want && i < 27; i++) {
            int f = side_neighbor(m, e, i);
            want = f < 0 || m->leaf[f].level <= m->leaf[e].level;
        }
        m->wanted[e] = (unsigned char)want;
        found |= want;
    }
    count_regions(m, 1, 0);
    if (!found)
        return 0;
    int merged = 0;
#pragma omp parallel for reduction(+ : merged)
    for (int e = 0; e < m->leaves; e++) {
        int child = 0, group = can_merge(m, e, &child);
        m->first[e] = !group || child == 0;
        merged += group && child == 0;
    }
    count_regions(m, 1, 0);
    if (!merged)
        return 0;
    sum_up(m, m->leaves);
    rebuild(m, t);
    return merged;
}

// Adapt the mesh to a source. Returns whether it changed.
static int adapt(struct mesh *m, const struct tables *t, const struct source *s) {
    int changed = 0;
    while (refine(m, t, s))
        changed = 1;
    while (coarsen(m, t, s))
        changed = 1;
    return changed;
}

#endif
