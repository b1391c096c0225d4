/* SPDX-License-Identifier: MIT */
// CG: estimate the smallest eigenvalue of a sparse symmetric matrix by the inverse power method,
// and solve each of its systems with 25 steps of conjugate gradients. Specification: NAS report
// RNR-94-007 (Bailey, Barszcz et al., 1994). OpenMP structure: NAS-99-011 (Jin, Frumkin, Yan, 1999)
// and NPB 3.
//
// Synchronization: an iteration has 3 parallel regions, one for the whole solver and one for each
// of two loops. A step of the solver has 5 barriers: 4 at the ends of loops, and 1 after the master
// thread resets the sums. All loops are static and all rows have about the same length: threads
// wait because of skew and preemption, not imbalance. The region of the solver ends with a join.
//
// Difference from NPB: one thread draws the random vectors of the matrix, and the team assembles
// the rows; in NPB each thread draws all vectors. Neither is timed.
#include <math.h>
#include <omp.h>

#include "../suite.h"
#include "random.h"

enum {
    STEPS = 25,
    BARRIERS_A_STEP = 5,
    // Before the steps, in the steps, and after them with the join.
    SOLVER_BARRIERS = 2 + STEPS * BARRIERS_A_STEP + 2,
    REGIONS = 3,                    // per iteration
    BARRIERS = SOLVER_BARRIERS + 2, // per iteration
};
static const double condition = 0.1; // smallest scale of an outer product

struct problem {
    long rows;
    int nonzeros; // of a random vector
    int iterations;
    double shift, zeta;
};
static const char *const classes[] = {"S", "W", "A", "B", NULL};
static const struct problem problems[] = {
    {1400, 7, 15, 10, 8.5971775078648},
    {7000, 8, 15, 12, 10.362595087124},
    {14000, 11, 15, 20, 17.130235054029},
    {75000, 13, 75, 60, 22.712745482631},
};

struct matrix {
    long rows;
    long *first; // first element of each row, and the end of the last
    int *column;
    double *value;
};

// One sparse random vector for each row of the matrix. Vector i starts at element i * stride.
struct vectors {
    long stride;
    int *length;
    int *place;
    double *value;
};

// An element: its vector, and its value times the scale of that vector's outer product.
struct element {
    int vector;
    double scaled;
};
struct places {
    long *first; // first element of each place, and the end of the last
    struct element *elements;
};

struct scratch {
    char *seen;   // by column; all 0 between rows
    double *sum;  // by column
    int *columns; // columns seen in this row
};

static long find(const int *places, long length, long place) {
    long i = 0;
    while (i < length && places[i] != place)
        i++;
    return i;
}

// Draw a vector: values and places in turn, without places that are taken or past the end. The
// element at `center` is 0.5 in any case. Returns the number of elements.
static int draw_vector(const struct problem *problem, double *seed, long center, int *places,
                       double *values) {
    long range = 1, length = 0;
    while (range < problem->rows)
        range *= 2;
    while (length < problem->nonzeros) {
        values[length] = npb_random(seed, NPB_MULTIPLIER);
        long place = (long)(npb_random(seed, NPB_MULTIPLIER) * (double)range);
        if (place < problem->rows && find(places, length, place) == length)
            places[length++] = (int)place;
    }
    long at = find(places, length, center);
    places[at] = (int)center;
    values[at] = 0.5;
    return (int)(at < length ? length : length + 1);
}

static struct vectors draw_vectors(const struct problem *problem) {
    struct vectors v = {.stride = problem->nonzeros + 1};
    size_t rows = (size_t)problem->rows, most = rows * (size_t)v.stride;
    v.length = suite_memory(sizeof *v.length * rows);
    v.place = suite_memory(sizeof *v.place * most);
    v.value = suite_memory(sizeof *v.value * most);
    double seed = 314159265;
    npb_random(&seed, NPB_MULTIPLIER); // the specification drops the first number
    for (long i = 0; i < problem->rows; i++)
        v.length[i] =
            draw_vector(problem, &seed, i, v.place + i * v.stride, v.value + i * v.stride);
    return v;
}

// Order the elements of all vectors by place, and then by vector. Scales fall from 1 to
// `condition` in a geometric sequence.
static struct places order_by_place(const struct vectors *v, long rows) {
    struct places p = {.first = suite_memory(sizeof *p.first * (size_t)(rows + 2))};
    for (long i = 0; i < rows; i++)
        for (long k = i * v->stride; k < i * v->stride + v->length[i]; k++)
            p.first[v->place[k] + 2]++;
    for (long i = 0; i < rows; i++)
        p.first[i + 2] += p.first[i + 1];
    p.elements = suite_memory(sizeof *p.elements * (size_t)p.first[rows + 1]);
    double scale = 1, ratio = pow(condition, 1 / (double)rows);
    for (long i = 0; i < rows; i++, scale *= ratio)
        for (long k = i * v->stride; k < i * v->stride + v->length[i]; k++)
            p.elements[p.first[v->place[k] + 1]++] = (struct element){(int)i, scale * v->value[k]};
    return p;
}

// Sum up a row of all outer products in w->sum. Returns the number of w->columns, unordered.
static long assemble_row(const struct vectors *v, const struct places *p, long row,
                         struct scratch *w) {
    long count = 0;
    for (long e = p->first[row]; e < p->first[row + 1]; e++) {
        long start = p->elements[e].vector * v->stride;
        for (long k = start; k < start + v->length[p->elements[e].vector]; k++) {
            int column = v->place[k];
            if (!w->seen[column]) {
                w->seen[column] = 1;
                w->sum[column] = 0;
                w->columns[count++] = column;
            }
            w->sum[column] += p->elements[e].scaled * v->value[k];
        }
    }
    for (long i = 0; i < count; i++)
        w->seen[w->columns[i]] = 0;
    return count;
}

static int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// Store a row by rising column.
static void store_row(struct matrix *m, long row, double diagonal, struct scratch *w) {
    long at = m->first[row], count = m->first[row + 1] - at;
    qsort(w->columns, (size_t)count, sizeof *w->columns, compare);
    for (long i = 0; i < count; i++) {
        int column = w->columns[i];
        m->column[at + i] = column;
        m->value[at + i] = w->sum[column] + (column == row ? diagonal : 0);
    }
}

// Return the sum of the scaled outer products, plus (condition - shift) on the diagonal.
static struct matrix make_matrix(const struct problem *problem) {
    struct matrix m = {.rows = problem->rows};
    size_t rows = (size_t)m.rows;
    struct vectors v = draw_vectors(problem);
    struct places p = order_by_place(&v, m.rows);
    m.first = suite_memory(sizeof *m.first * (rows + 1));
#pragma omp parallel
    {
        struct scratch w = {.seen = suite_memory(rows),
                            .sum = suite_memory(sizeof *w.sum * rows),
                            .columns = suite_memory(sizeof *w.columns * rows)};
#pragma omp for
        for (long row = 0; row < m.rows; row++)
            m.first[row + 1] = assemble_row(&v, &p, row, &w);
#pragma omp single
        {
            for (long row = 0; row < m.rows; row++)
                m.first[row + 1] += m.first[row];
            m.column = suite_memory(sizeof *m.column * (size_t)m.first[m.rows]);
            m.value = suite_memory(sizeof *m.value * (size_t)m.first[m.rows]);
        }
#pragma omp for
        for (long row = 0; row < m.rows; row++) {
            assemble_row(&v, &p, row, &w);
            store_row(&m, row, condition - problem->shift, &w);
        }
        free(w.seen);
        free(w.sum);
        free(w.columns);
    }
    free(v.length);
    free(v.place);
    free(v.value);
    free(p.first);
    free(p.elements);
    return m;
}

struct vector_set {
    double *x, *z, *p, *q, *r;
};

// out = m * in. Pre: called in a parallel region. Ends with a barrier.
static void multiply(const struct matrix *m, const double *in, double *out) {
#pragma omp for
    for (long row = 0; row < m->rows; row++) {
        double sum = 0;
        for (long k = m->first[row]; k < m->first[row + 1]; k++)
            sum += m->value[k] * in[m->column[k]];
        out[row] = sum;
    }
}

// Solve m * z = x approximately, from z = 0. Returns the norm of the residual, computed anew.
static double solve(const struct matrix *m, const struct vector_set *set) {
    double *x = set->x, *z = set->z, *p = set->p, *q = set->q, *r = set->r;
    long n = m->rows;
    double rho = 0, rho_before = 0, curvature = 0, error = 0;
#pragma omp parallel
    {
#pragma omp for
        for (long i = 0; i < n; i++) {
            z[i] = q[i] = 0;
            r[i] = p[i] = x[i];
        }
#pragma omp for reduction(+ : rho)
        for (long i = 0; i < n; i++)
            rho += r[i] * r[i];
        for (int step = 0; step < STEPS; step++) {
#pragma omp master
            {
                rho_before = rho;
                rho = curvature = 0;
            }
#pragma omp barrier
            multiply(m, p, q);
#pragma omp for reduction(+ : curvature)
            for (long i = 0; i < n; i++)
                curvature += p[i] * q[i];
            double alpha = rho_before / curvature;
#pragma omp for reduction(+ : rho)
            for (long i = 0; i < n; i++) {
                z[i] += alpha * p[i];
                r[i] -= alpha * q[i];
                rho += r[i] * r[i];
            }
            double beta = rho / rho_before;
#pragma omp for
            for (long i = 0; i < n; i++)
                p[i] = r[i] + beta * p[i];
        }
        multiply(m, z, r);
#pragma omp for reduction(+ : error) nowait
        for (long i = 0; i < n; i++)
            error += (x[i] - r[i]) * (x[i] - r[i]);
    }
    return sqrt(error);
}

static void start_vector(double *x, long n) {
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        x[i] = 1;
}

// Run an iteration of the inverse power method. Returns the product of x and the solution z.
// *residual: the solver's. Post: x is z, normalized.
static double iterate(const struct matrix *m, const struct vector_set *set, double *residual) {
    double *x = set->x, *z = set->z;
    double product = 0, square = 0;
    *residual = solve(m, set);
#pragma omp parallel for reduction(+ : product, square)
    for (long i = 0; i < m->rows; i++) {
        product += x[i] * z[i];
        square += z[i] * z[i];
    }
    double factor = 1 / sqrt(square);
#pragma omp parallel for
    for (long i = 0; i < m->rows; i++)
        x[i] = factor * z[i];
    return product;
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("npb/cg", classes, argc, argv);
    const struct problem *problem = problems + s.class_index;
    struct matrix m = make_matrix(problem);
    struct vector_set set;
    double **vectors[] = {&set.x, &set.z, &set.p, &set.q, &set.r};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = suite_memory(sizeof(double) * (size_t)m.rows);
    do {
        double zeta = 0, residual = 0;
        start_vector(set.x, m.rows);
        iterate(&m, &set, &residual); // warms up the caches; not timed
        start_vector(set.x, m.rows);
        suite_start(&s);
        for (int i = 0; i < problem->iterations; i++)
            zeta = problem->shift + 1 / iterate(&m, &set, &residual);
        suite_stop(&s);
        suite_verify(&s, "zeta", zeta, problem->zeta, 1e-10);
        suite_verify(&s, "the residual", residual, 0, 1e-10);
        suite_count(&s, "regions", (long)problem->iterations * REGIONS);
        suite_count(&s, "barriers", (long)problem->iterations * BARRIERS);
    } while (suite_next(&s));
    return suite_report(&s);
}
