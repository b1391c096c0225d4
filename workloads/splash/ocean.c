/* SPDX-License-Identifier: MIT */
// Eddy currents in an ocean basin, as Ocean of SPLASH-2: Woo, Ohara, Torrie, Singh, Gupta, "The
// SPLASH-2 Programs: Characterization and Methodological Considerations", ISCA 1995, and Singh,
// Weber, Gupta, "SPLASH", CSL-TR-92-526. The model has two layers and is quasi-geostrophic
// (Holland, J. Phys. Oceanography 8, 1978). A time step evaluates Laplacians and Jacobians
// (Arakawa, 1966). It solves a Helmholtz equation and a Poisson equation for the change of the
// stream functions. The solver is the multigrid Cycle C of Brandt (Math. Comp. 31, 1977) with
// red-black Gauss-Seidel sweeps.
//
// Synchronization: each thread owns a rectangle of each grid. A time step has 10 barriers and one
// lock for an integral over the basin. A sweep of the solver has 4 barriers and one lock for the
// global error, at any level. A transfer to a coarser grid has one more barrier. Coarse grids have
// too few points for many threads: the others only wait.
//
// Differences: grids have an edge of 2^k + 1 points, not 2^k + 2. Arrays are of the whole grid, as
// in the original's "non-contiguous partitions", so threads copy no borders. The residual is stored
// before a transfer instead. The number of threads need not be a power of two. The coarsest grid
// does not depend on it, and the integral is in fixed point, so results do not depend on it either.
#include "parmacs.h"

enum { LEVELS = 8, COARSEST = 9, LAYERS = 2, MAX_SWEEPS = 5000, OWNED = 64 };

static const char *const classes[] = {"small", "test", "medium", "large", NULL};
static const struct {
    long points, steps;
    double difference; // mean difference of the layers' stream functions at the end
} sizes[] = {{257, 64, 4082.7569021707},
             {65, 4, 4168.3857021914},
             {513, 76, 4067.0632033207},
             {1025, 66, 4059.3921559131}};

// The basin, in metres and seconds.
static const double length = 4e6, depth[LAYERS] = {1000, 4000}, total_depth = 5000;
static const double coriolis = 9.3e-5, beta = 2e-11, reduced_gravity = 0.02, wind = 1e-4;
static const double bottom_friction = 1e-7, time_step = 7200, time_filter = 0.05;
static const double tolerance = 1e-15; // bound of the equations' residuals, 1/s^2
// Brandt's parameters. slow: a sweep that leaves more of the error is slow. coarse_accuracy: part
// of the error to which coarser grids solve.
static const double slow = 0.6, coarse_accuracy = 0.3;
static const double fixed_point = 0x1p26;

// Ranges of rows and columns, without their ends.
struct part {
    long row, row_end, column, column_end;
};

struct level {
    long points;
    double spacing2; // square of the distance between points
    double *q, *rhs, *residual;
};

struct ocean {
    struct suite *suite;
    long points, steps;
    int finest;
    double spacing;
    struct level level[LEVELS];
    double lambda2; // inverse square of the radius of deformation
    // Index 0 is the upper layer.
    double *psi[LAYERS], *before[LAYERS]; // stream function, now and one step ago
    double *vorticity[LAYERS], *old_vorticity[LAYERS];
    double *friction4[LAYERS], *friction6[LAYERS]; // Laplacians of old_vorticity
    double *advection[LAYERS], *exchange;          // Jacobians
    double *baroclinic, *barotropic; // changes of psi[0] - psi[1] without `unit`, and of the mean
    double *baroclinic_rhs, *barotropic_rhs;
    double *unit; // solution of the homogeneous Helmholtz equation that is 1 at the border
    pthread_mutex_t error_lock, integral_lock;
    double error;
    int64_t integral, unit_integral;
    long sweeps;
    double *owned[OWNED]; // all grids
    int owned_count;
};

// Return the inner points of a grid that thread `id` owns.
static struct part inner_part(const struct team *team, long id, long points) {
    long rows = team_rows(team->threads), columns = team->threads / rows;
    long y = id / columns, x = id % columns;
    struct part p = {.row = 1 + share_start(points - 2, rows, y),
                     .column = 1 + share_start(points - 2, columns, x)};
    p.row_end = p.row + share(points - 2, rows, y);
    p.column_end = p.column + share(points - 2, columns, x);
    return p;
}

// Return the points of a grid that thread `id` owns, with adjacent points of the border.
static struct part whole_part(const struct team *team, long id, long points) {
    struct part p = inner_part(team, id, points);
    long rows = team_rows(team->threads), columns = team->threads / rows;
    p.row -= id / columns == 0;
    p.column -= id % columns == 0;
    p.row_end += id / columns == rows - 1;
    p.column_end += id % columns == columns - 1;
    return p;
}

// Sweep over the points of one color: those whose row and column add up to it, modulo 2. Returns
// the largest residual found.
static double relax(const struct level *l, const struct part *p, double lambda2, int color) {
    double worst = 0, diagonal = 4 + lambda2 * l->spacing2, scale = 1 / diagonal;
    for (long i = p->row; i < p->row_end; i++) {
        double *q = l->q + i * l->points;
        const double *up = q - l->points, *down = q + l->points;
        const double *rhs = l->rhs + i * l->points;
        for (long j = p->column + ((p->column + i + color) & 1); j < p->column_end; j += 2) {
            double residual =
                q[j - 1] + q[j + 1] + up[j] + down[j] - diagonal * q[j] - l->spacing2 * rhs[j];
            q[j] += residual * scale;
            residual = fabs(residual);
            worst = residual > worst ? residual : worst;
        }
    }
    return worst / l->spacing2;
}

static double residual_at(const struct level *l, double lambda2, long i, long j) {
    const double *q = l->q + i * l->points + j;
    double sum = q[-1] + q[1] + q[-l->points] + q[l->points];
    return l->rhs[i * l->points + j] - (sum - (4 + lambda2 * l->spacing2) * *q) / l->spacing2;
}

static void store_residual(const struct level *l, const struct part *p, double lambda2) {
    for (long i = p->row; i < p->row_end; i++)
        for (long j = p->column; j < p->column_end; j++)
            l->residual[i * l->points + j] = residual_at(l, lambda2, i, j);
}

// Restrict the finer grid's residual by full weighting. The first guess is 0.
static void restrict_to(const struct level *coarse, const struct level *fine,
                        const struct part *p) {
    long n = fine->points;
    for (long i = p->row; i < p->row_end; i++)
        for (long j = p->column; j < p->column_end; j++) {
            const double *r = fine->residual + 2 * i * n + 2 * j;
            coarse->rhs[i * coarse->points + j] = (4 * *r + 2 * (r[-1] + r[1] + r[-n] + r[n]) +
                                                   r[-n - 1] + r[-n + 1] + r[n - 1] + r[n + 1]) /
                                                  16;
            coarse->q[i * coarse->points + j] = 0;
        }
}

// Add the coarser grid's solution, interpolated bilinearly.
static void correct(const struct level *fine, const struct level *coarse, const struct part *p) {
    for (long i = p->row; i < p->row_end; i++) {
        const double *low = coarse->q + i / 2 * coarse->points;
        const double *high = coarse->q + (i + 1) / 2 * coarse->points;
        double *q = fine->q + i * fine->points;
        for (long j = p->column; j < p->column_end; j++)
            q[j] += (low[j / 2] + low[(j + 1) / 2] + high[j / 2] + high[(j + 1) / 2]) / 4;
    }
}

// Run one red and one black sweep of all threads. Returns the largest residual of all.
static double sweep(struct ocean *o, struct team *team, long id, const struct level *l,
                    double lambda2) {
    struct part p = inner_part(team, id, l->points);
    if (id == 0) {
        o->error = 0;
        o->sweeps++;
    }
    barrier_wait(&team->barrier);
    double red = relax(l, &p, lambda2, 0);
    barrier_wait(&team->barrier);
    double black = relax(l, &p, lambda2, 1);
    lock(&o->error_lock);
    o->error = fmax(o->error, fmax(red, black));
    unlock(&o->error_lock);
    barrier_wait(&team->barrier);
    double error = o->error;
    barrier_wait(&team->barrier); // thread 0 clears the error next
    return error;
}

// Solve laplacian(q) - lambda2 q = rhs on the finest grid. Pre: q holds a guess and the border.
static void solve(struct ocean *o, struct team *team, long id, double lambda2) {
    double target[LEVELS], last = INFINITY;
    int k = o->finest;
    target[k] = tolerance;
    for (int sweeps = 0; sweeps < MAX_SWEEPS; sweeps++) {
        const struct level *l = o->level + k;
        double error = sweep(o, team, id, l, lambda2);
        if (error < target[k]) {
            if (k == o->finest)
                return;
            k++;
            struct part fine = inner_part(team, id, o->level[k].points);
            correct(o->level + k, l, &fine);
            last = INFINITY;
        } else if (k > 0 && error > slow * last) {
            struct part p = inner_part(team, id, l->points);
            store_residual(l, &p, lambda2);
            barrier_wait(&team->barrier);
            k--;
            target[k] = coarse_accuracy * error;
            struct part coarse = inner_part(team, id, o->level[k].points);
            restrict_to(o->level + k, l, &coarse);
            last = INFINITY;
        } else {
            last = error;
        }
    }
    fail("%s: no solution after %d sweeps", o->suite->program, MAX_SWEEPS);
}

static void copy(const struct ocean *o, const struct part *p, double *to, const double *from) {
    for (long i = p->row; i < p->row_end; i++)
        memcpy(to + i * o->points + p->column, from + i * o->points + p->column,
               sizeof *to * (size_t)(p->column_end - p->column));
}

static void laplacian(const struct ocean *o, const struct part *p, double *to, const double *from) {
    long n = o->points;
    double scale = 1 / (o->spacing * o->spacing);
    for (long i = p->row; i < p->row_end; i++) {
        const double *a = from + i * n;
        for (long j = p->column; j < p->column_end; j++)
            to[i * n + j] = (a[j - 1] + a[j + 1] + a[j - n] + a[j + n] - 4 * a[j]) * scale;
    }
}

// Compute Arakawa's Jacobian of `a` and `b` + slope * y: it conserves energy and enstrophy.
static void jacobian(const struct ocean *o, const struct part *p, double *to, const double *from_a,
                     const double *from_b, double slope) {
    long n = o->points;
    double scale = 1 / (12 * o->spacing * o->spacing), step = slope * o->spacing;
    for (long i = p->row; i < p->row_end; i++)
        for (long j = p->column; j < p->column_end; j++) {
            const double *a = from_a + i * n + j, *b = from_b + i * n + j;
            double b_n = b[n] + step, b_ne = b[n + 1] + step, b_nw = b[n - 1] + step;
            double b_s = b[-n] - step, b_se = b[1 - n] - step, b_sw = b[-1 - n] - step;
            double centred = (a[1] - a[-1]) * (b_n - b_s) - (a[n] - a[-n]) * (b[1] - b[-1]);
            double flux_a = a[1] * (b_ne - b_se) - a[-1] * (b_nw - b_sw) - a[n] * (b_ne - b_nw) +
                            a[-n] * (b_se - b_sw);
            double flux_b = b_n * (a[n + 1] - a[n - 1]) - b_s * (a[1 - n] - a[-1 - n]) -
                            b[1] * (a[n + 1] - a[1 - n]) + b[-1] * (a[n - 1] - a[-1 - n]);
            to[i * n + j] = (centred + flux_a + flux_b) * scale;
        }
}

static int64_t sum_part(const struct ocean *o, const struct part *p, const double *from) {
    int64_t sum = 0;
    for (long i = p->row; i < p->row_end; i++)
        for (long j = p->column; j < p->column_end; j++)
            sum += llrint(from[i * o->points + j] * fixed_point);
    return sum;
}

// Combine the terms of each layer's vorticity to the right-hand sides of both equations.
static void right_sides(struct ocean *o, const struct part *p) {
    double viscosity = pow(o->spacing, 4) / (640 * time_step);
    double pi2 = 2 * acos(-1), weight[LAYERS];
    for (int layer = 0; layer < LAYERS; layer++)
        weight[layer] = depth[layer] / total_depth;
    for (long i = p->row; i < p->row_end; i++) {
        double y = (double)i * o->spacing;
        double curl = -wind * pi2 / length * sin(pi2 * y / length) / depth[0];
        for (long j = p->column; j < p->column_end; j++) {
            long at = i * o->points + j;
            double upper = curl - o->advection[0][at] - viscosity * o->friction6[0][at];
            double lower = -o->advection[1][at] - viscosity * o->friction6[1][at] -
                           bottom_friction * o->old_vorticity[1][at];
            o->baroclinic_rhs[at] = upper - lower - o->lambda2 * o->exchange[at];
            o->barotropic_rhs[at] = weight[0] * upper + weight[1] * lower;
        }
    }
}

// Load a guess with its border, and the right-hand side, into the solver.
static void load(const struct ocean *o, const struct team *team, long id, const double *guess,
                 const double *rhs) {
    struct part inner = inner_part(team, id, o->points), whole = whole_part(team, id, o->points);
    copy(o, &whole, o->level[o->finest].q, guess);
    copy(o, &inner, o->level[o->finest].rhs, rhs);
}

// Advance time: leapfrog with a filter; the first step is a forward one. The baroclinic change gets
// a multiple of the unit solution, so that its integral over the basin is 0.
static void advance(struct ocean *o, const struct part *p, long step) {
    double factor = -(double)o->integral / (double)o->unit_integral;
    double interval = step ? 2 * time_step : time_step, filter = step ? time_filter : 0;
    double of_upper[LAYERS] = {depth[1] / total_depth, -depth[0] / total_depth};
    for (int layer = 0; layer < LAYERS; layer++)
        for (long i = p->row; i < p->row_end; i++)
            for (long j = p->column; j < p->column_end; j++) {
                long at = i * o->points + j;
                double *now = o->psi[layer] + at, *before = o->before[layer] + at;
                double change = o->barotropic[at] +
                                of_upper[layer] * (o->baroclinic[at] + factor * o->unit[at]);
                double next = *before + interval * change;
                *before = *now + filter * (next - 2 * *now + *before);
                *now = next;
            }
}

static void do_step(struct ocean *o, struct team *team, long id, long step) {
    struct part inner = inner_part(team, id, o->points), whole = whole_part(team, id, o->points);
    struct barrier *barrier = &team->barrier;
    const struct level *top = o->level + o->finest;
    for (int layer = 0; layer < LAYERS; layer++) {
        laplacian(o, &inner, o->vorticity[layer], o->psi[layer]);
        laplacian(o, &inner, o->old_vorticity[layer], o->before[layer]);
    }
    barrier_wait(barrier);
    for (int layer = 0; layer < LAYERS; layer++)
        laplacian(o, &inner, o->friction4[layer], o->old_vorticity[layer]);
    jacobian(o, &inner, o->exchange, o->psi[0], o->psi[1], 0);
    barrier_wait(barrier);
    for (int layer = 0; layer < LAYERS; layer++)
        jacobian(o, &inner, o->advection[layer], o->psi[layer], o->vorticity[layer], beta);
    barrier_wait(barrier);
    for (int layer = 0; layer < LAYERS; layer++)
        laplacian(o, &inner, o->friction6[layer], o->friction4[layer]);
    barrier_wait(barrier);
    right_sides(o, &inner);
    if (id == 0)
        o->integral = 0;
    barrier_wait(barrier);
    load(o, team, id, o->baroclinic, o->baroclinic_rhs);
    solve(o, team, id, o->lambda2);
    barrier_wait(barrier);
    copy(o, &inner, o->baroclinic, top->q);
    int64_t sum = sum_part(o, &inner, o->baroclinic);
    lock(&o->integral_lock);
    o->integral += sum;
    unlock(&o->integral_lock);
    barrier_wait(barrier);
    load(o, team, id, o->barotropic, o->barotropic_rhs);
    solve(o, team, id, 0);
    barrier_wait(barrier);
    copy(o, &inner, o->barotropic, top->q);
    barrier_wait(barrier);
    advance(o, &whole, step);
    barrier_wait(barrier);
}

// Set the initial state: a gyre in both layers, and eddies of opposite signs with integral 0.
static void set_initial(struct ocean *o, const struct part *p) {
    double step = acos(-1) / (double)(o->points - 1);
    for (long i = p->row; i < p->row_end; i++)
        for (long j = p->column; j < p->column_end; j++) {
            long at = i * o->points + j;
            double y = (double)i * step, x = (double)j * step;
            double gyre = 2e4 * sin(x) * sin(2 * y), eddies = 1e4 * sin(5 * x) * sin(4 * y);
            o->psi[0][at] = o->before[0][at] = gyre + eddies * depth[1] / total_depth;
            o->psi[1][at] = o->before[1][at] = gyre - eddies * depth[0] / total_depth;
        }
}

static void work(struct team *team, long id, void *shared) {
    struct ocean *o = shared;
    struct part inner = inner_part(team, id, o->points), whole = whole_part(team, id, o->points);
    set_initial(o, &inner);
    for (long i = whole.row; i < whole.row_end; i++)
        for (long j = whole.column; j < whole.column_end; j++)
            o->unit[i * o->points + j] = 1;
    barrier_wait(&team->barrier);
    load(o, team, id, o->unit, o->baroclinic_rhs);
    solve(o, team, id, o->lambda2);
    barrier_wait(&team->barrier);
    copy(o, &inner, o->unit, o->level[o->finest].q);
    int64_t sum = sum_part(o, &inner, o->unit);
    lock(&o->integral_lock);
    o->unit_integral += sum;
    unlock(&o->integral_lock);
    barrier_wait(&team->barrier);
    for (long step = 0; step < o->steps; step++)
        do_step(o, team, id, step);
}

static double *grid(struct ocean *o, long points) {
    o->owned[o->owned_count] = suite_memory(sizeof(double) * (size_t)points * (size_t)points);
    return o->owned[o->owned_count++];
}

static void allocate(struct ocean *o) {
    double **fields[] = {&o->exchange,       &o->baroclinic,     &o->barotropic,
                         &o->baroclinic_rhs, &o->barotropic_rhs, &o->unit};
    double **pairs[] = {o->psi,       o->before,    o->vorticity, o->old_vorticity,
                        o->friction4, o->friction6, o->advection};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i] = grid(o, o->points);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int layer = 0; layer < LAYERS; layer++)
            pairs[i][layer] = grid(o, o->points);
    while ((COARSEST - 1) << o->finest < o->points - 1)
        o->finest++;
    for (int k = 0; k <= o->finest; k++) {
        struct level *l = o->level + k;
        l->points = ((COARSEST - 1) << k) + 1;
        l->spacing2 = pow(length / (double)(l->points - 1), 2);
        l->q = grid(o, l->points);
        l->rhs = grid(o, l->points);
        l->residual = grid(o, l->points);
    }
}

static void verify(struct suite *s, const struct ocean *o) {
    struct level a = o->level[o->finest], b = a;
    a.q = o->baroclinic;
    a.rhs = o->baroclinic_rhs;
    double worst = 0, sum = 0, size = 0;
    for (long i = 1; i < o->points - 1; i++)
        for (long j = 1; j < o->points - 1; j++) {
            worst = fmax(worst, fabs(residual_at(&a, o->lambda2, i, j)));
            worst = fmax(worst, fabs(residual_at(&b, 0, i, j)));
            double difference = o->psi[0][i * o->points + j] - o->psi[1][i * o->points + j];
            sum += difference;
            size += fabs(difference);
        }
    suite_verify(s, "the largest residual", worst, 0, tolerance);
    suite_verify(s, "the integral of the layers' difference", sum / size, 0, 1e-9);
    double inner = (double)((o->points - 2) * (o->points - 2));
    suite_verify(s, "the mean difference of the layers", size / inner,
                 sizes[s->class_index].difference, 1e-6);
    size_t bytes = sizeof(double) * (size_t)o->points * (size_t)o->points;
    suite_checksum(s, suite_hash(suite_hash(0, o->psi[0], bytes), o->psi[1], bytes));
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("splash/ocean", classes, argc, argv);
    do {
        struct ocean o = {.suite = &s,
                          .points = sizes[s.class_index].points,
                          .steps = sizes[s.class_index].steps,
                          .error_lock = PTHREAD_MUTEX_INITIALIZER,
                          .integral_lock = PTHREAD_MUTEX_INITIALIZER};
        o.spacing = length / (double)(o.points - 1);
        o.lambda2 = coriolis * coriolis * total_depth / (reduced_gravity * depth[0] * depth[1]);
        allocate(&o);
        team_run(&s, work, &o);
        verify(&s, &o);
        suite_count(&s, "sweeps", o.sweeps);
        while (o.owned_count)
            free(o.owned[--o.owned_count]);
    } while (suite_next(&s));
    return suite_report(&s);
}
