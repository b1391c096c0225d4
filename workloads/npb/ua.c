/* SPDX-License-Identifier: MIT */
// NPB UA: heat from a ball that moves through the unit cube, by spectral elements of 5 points in
// each direction, on a mesh that follows the ball. Feng, Van der Wijngaart, Biswas, Mavriplis:
// "Unstructured Adaptive (UA) NAS Parallel Benchmark, Version 1.0", NAS Technical Report
// NAS-04-006, 2004. The result is the integral of the temperature, with the official value of each
// class.
//
// Synchronization: a time step convects each element on its own, then solves for diffusion by 10
// iterations of conjugate gradients. An iteration has 13 parallel regions and 14 barriers. Most
// regions are short loops over all nodes or all mortar points; two end in a reduction. One region
// adds values at element faces to mortar points, each under the lock of its point: 150 to 486 lock
// acquisitions for each element. A step has 12 such regions. Threads take equal numbers of
// elements, in the order of the Morton curve. An element with smaller neighbors costs up to three
// times as much, so the other threads wait at the barrier. The mesh adapts every 5 steps, in rounds
// of short loops, log2(elements) of them for a prefix sum. A round halves or merges few elements,
// close together: most threads idle. Ten iterations do not converge: the official values hold only
// for this preconditioner and this initial guess.
//
// Differences: the mesh is a sorted list of the leaves of an octree, and the first element at a
// vertex, edge or face numbers the mortar points there. So an adaptation has fewer loops than in
// the original; a step has as many.
#include <omp.h>

#include "ua_solver.h"

static const char *const classes[] = {"S", "W", "A", "B", NULL};

static const struct class {
    int levels, steps, elements, mortars; // elements, mortars: maxima at any time
    double radius, heat;
} sizes[] = {
    {4, 50, 250, 11600, 0.040, 0.1890013110962e-02},
    {5, 100, 700, 26700, 0.060, 0.2569794837076e-04},
    {6, 200, 2400, 92700, 0.076, 0.8939996281443e-04},
    {7, 200, 8800, 334600, 0.076, 0.4507561922901e-04},
};

static double *doubles(long n) { return suite_memory((size_t)n * sizeof(double)); }

static void make_solver(struct solver *v, const struct class *c) {
    struct mesh *m = &v->m;
    size_t elements = (size_t)c->elements;
    m->finest = c->levels;
    m->most_leaves = c->elements;
    m->most_mortars = c->mortars;
    m->leaf = suite_memory(elements * sizeof *m->leaf);
    m->next_leaf = suite_memory(elements * sizeof *m->leaf);
    m->links = suite_memory(elements * sizeof *m->links);
    m->first = suite_memory(elements * sizeof *m->first);
    m->scratch = suite_memory(elements * sizeof *m->first);
    m->wanted = suite_memory(elements);
    m->held = suite_memory(elements);
    double **nodes[] = {&m->heat,           &m->next_heat,  &v->rhs,         &v->start,
                        &v->direction.node, &v->image.node, &v->change.node, &v->diagonal.node};
    double **mortars[] = {&m->free,
                          &v->guess,
                          &v->shares,
                          &v->residual.mortar,
                          &v->direction.mortar,
                          &v->image.mortar,
                          &v->change.mortar,
                          &v->diagonal.mortar};
    for (int i = 0; i < 8; i++) {
        *nodes[i] = doubles((long)NODES * c->elements);
        *mortars[i] = doubles(c->mortars);
    }
    v->lock = suite_memory((size_t)c->mortars * sizeof *v->lock);
    for (int n = 0; n < c->mortars; n++)
        omp_init_lock(&v->lock[n]);
    make_tables(&v->t);
    make_forms(&v->t, &v->f);
    v->source.radius = c->radius;
    v->step = 0.04 * ldexp(1, -c->levels);
    for (int level = 0; level <= c->levels; level++) {
        double half = ldexp(1, -level - 1);
        v->scale[level][0] = diffusivity * half;
        v->scale[level][1] = half * half * half / v->step;
    }
}

// Adapt the mesh to the source's current place. Returns whether it changed.
static int adapt_now(struct solver *v) {
    source_at(&v->source, v->time);
    int changed = adapt(&v->m, &v->t, &v->source);
    if (changed)
        number_mortars(&v->m);
    return changed;
}

static void advance(struct solver *v, int mesh_changed) {
    convect(v, mesh_changed);
    diffuse(v, mesh_changed);
    v->time += v->step;
}

static void forget_heat(struct solver *v) {
    v->time = 0;
    clear(v, v->m.heat, (long)NODES * v->m.leaves);
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("npb/ua", classes, argc, argv);
    const struct class *c = &sizes[s.class_index];
    static struct solver solver;
    struct solver *v = &solver;
    make_solver(v, c);
    do {
        v->m.leaves = 1;
        v->m.leaf[0] = (struct leaf){.level = 0};
        forget_heat(v);
        adapt_now(v);
        advance(v, 1); // one untimed step
        forget_heat(v);
        v->locks = v->m.regions = v->m.barriers = 0;
        int changed = 0;
        suite_start(&s);
        for (int step = 1; step <= c->steps; step++) {
            advance(v, changed);
            changed = step % 5 == 0 && step < c->steps && adapt_now(v);
        }
        suite_stop(&s);
        suite_verify(&s, "the heat", total_heat(v), c->heat, 1e-8);
        suite_count(&s, "regions", v->m.regions);
        suite_count(&s, "barriers", v->m.barriers);
        suite_count(&s, "locks", v->locks);
    } while (suite_next(&s));
    return suite_report(&s);
}
