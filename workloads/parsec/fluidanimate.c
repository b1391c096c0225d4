/* SPDX-License-Identifier: MIT */
// Simulates a fluid by smoothed particle hydrodynamics, in a box, on a grid of cells.
// Specification: M. Mueller, D. Charypar, M. Gross, "Particle-Based Fluid Simulation for
// Interactive Applications", SCA 2003; C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC
// Benchmark Suite", PACT 2008.
//
// Each thread owns a rectangle of columns of cells. Particles of neighbor cells attract or repel
// each other, and each pair is computed once, for both particles.
//
// Synchronization: a frame has ten phases, each of which ends at a barrier (team.h; --spins N: poll
// before blocking). At the edges of rectangles, other threads add to a cell's particles too. The
// cells there have mutexes: two locks for each near pair and pass, one for each particle that
// enters the cell. So the number of locks grows with the number of threads; they are held for some
// nanoseconds. In one phase, thread 0 swaps the grids while the others wait. JSON counts:
// "barriers": episodes; "locks"; "border_cells". PACT 2008 has 17771909 locks for simlarge, five
// frames, with 8 threads.
//
// Differences: the original needs a power of two threads; here, any number bisects the box. Sums of
// densities and forces are integers, so the result does not depend on the order of particles. The
// fluid is a generated slope, not a file. The time step shrinks with the square of the spacing; the
// published one diverges for many particles. Frames: 10 to 22, not 5.
#include <pthread.h>

#include "team.h"

enum { BLOCK = 16, AXES = 3 };

static const float low_corner[AXES] = {-0.065f, -0.08f, -0.065f};
static const float high_corner[AXES] = {0.065f, 0.1f, 0.065f};
static const float gravity = -9.8f, rest_density = 1000, viscosity = 0.4f, stiffness = 3;
static const float wall_stiffness = 30000, wall_damping = 128, particle_size = 0.0002f;
static const float density_unit = 0x1p32f, force_unit = 0x1p24f; // units of the integer sums
static const double mean_height = 0.035;                         // mean height of the fluid, in m

struct problem {
    float per_metre; // particles per metre at rest
    int frames;
};

// Up to BLOCK particles, as arrays: a pass reads few members of many particles.
struct block {
    float at[BLOCK][AXES], velocity[BLOCK][AXES];
    float half_velocity[BLOCK][AXES]; // velocity half a step earlier
    float density[BLOCK];
    int64_t nearness[BLOCK];    // sum over near particles, in density_unit
    int64_t force[BLOCK][AXES]; // acceleration, in force_unit
    uint64_t id[BLOCK];
    struct block *next;
};

struct cell {
    struct block *first, *last;
    long count;
    pthread_mutex_t *lock; // BLOCK locks; NULL: only the owner changes the cell
};

struct pool { // blocks of one thread for one grid
    struct block **chunk;
    long chunks, used;
};

struct worker {
    alignas(LINE) long from[2], to[2]; // range of columns in x and z
    struct pool pool[2];               // one for each grid
    long locks;
    int64_t force[AXES]; // sum over particles
};

struct fluid {
    struct barrier barrier;
    long threads, frames, particles;
    long size[AXES]; // number of cells
    float cell_size[AXES], step, reach, square_reach, density_factor, pressure_factor,
        viscosity_factor;
    struct cell *grid[2];
    int now;    // grid that has the particles
    int *owner; // worker that owns a column
    pthread_mutex_t *locks;
    long border_cells;
    struct worker *worker;
};

// A particle, and the lock for adding to it, or NULL.
struct spot {
    struct block *block;
    long i;
    pthread_mutex_t *lock;
};

struct pair {
    struct spot a, b;
    float apart[AXES], square; // apart: from b to a; square: its square
};

static struct cell *cell_at(const struct fluid *f, int grid, long x, long y, long z) {
    return f->grid[grid] + (z * f->size[1] + y) * f->size[0] + x;
}

static struct block *take_block(struct pool *pool) {
    enum { CHUNK = 256 };
    if (pool->used == pool->chunks * CHUNK) {
        pool->chunk = realloc(pool->chunk, sizeof *pool->chunk * (size_t)(pool->chunks + 1));
        if (!pool->chunk)
            fail("no memory for blocks");
        pool->chunk[pool->chunks++] = suite_memory(sizeof(struct block) * CHUNK);
    }
    struct block *b = pool->chunk[pool->used / CHUNK] + pool->used % CHUNK;
    pool->used++;
    b->next = NULL;
    return b;
}

// Append particle `from_i` of a block to a cell.
static void add_particle(struct cell *cell, struct pool *pool, const struct block *from,
                         long from_i) {
    long i = cell->count % BLOCK;
    if (i == 0) {
        struct block *b = take_block(pool);
        *(cell->first ? &cell->last->next : &cell->first) = b;
        cell->last = b;
    }
    struct block *b = cell->last;
    memcpy(b->at[i], from->at[from_i], sizeof b->at[i]);
    memcpy(b->velocity[i], from->velocity[from_i], sizeof b->velocity[i]);
    memcpy(b->half_velocity[i], from->half_velocity[from_i], sizeof b->half_velocity[i]);
    b->id[i] = from->id[from_i];
    cell->count++;
}

static struct cell *cell_around(const struct fluid *f, int grid, const float at[AXES]) {
    long place[AXES];
    for (int axis = 0; axis < AXES; axis++) {
        long i = (long)((at[axis] - low_corner[axis]) / f->cell_size[axis]);
        place[axis] = i < 0 ? 0 : i >= f->size[axis] ? f->size[axis] - 1 : i;
    }
    return cell_at(f, grid, place[0], place[1], place[2]);
}

typedef void visitor(const struct fluid *, struct worker *, struct block *, long);

// Call `visit` for all particles of cells that worker `w` owns.
__attribute__((always_inline)) static inline void for_own(const struct fluid *f, struct worker *w,
                                                          visitor visit) {
    for (long z = w->from[1]; z < w->to[1]; z++)
        for (long y = 0; y < f->size[1]; y++)
            for (long x = w->from[0]; x < w->to[0]; x++) {
                struct cell *cell = cell_at(f, f->now, x, y, z);
                long left = cell->count;
                for (struct block *b = cell->first; b; b = b->next, left -= BLOCK)
                    for (long i = 0; i < BLOCK && i < left; i++)
                        visit(f, w, b, i);
            }
}

static void acquire(struct worker *w, pthread_mutex_t *lock) {
    if (!lock)
        return;
    w->locks++;
    pthread_mutex_lock(lock);
}

static void release(pthread_mutex_t *lock) {
    if (lock)
        pthread_mutex_unlock(lock);
}

static void empty_cells(const struct fluid *f, struct worker *w) {
    int next = !f->now;
    for (long z = w->from[1]; z < w->to[1]; z++)
        for (long y = 0; y < f->size[1]; y++)
            for (long x = w->from[0]; x < w->to[0]; x++) {
                struct cell *cell = cell_at(f, next, x, y, z);
                cell->first = cell->last = NULL;
                cell->count = 0;
            }
    w->pool[next].used = 0;
}

static void change_cell(const struct fluid *f, struct worker *w, struct block *b, long i) {
    struct cell *cell = cell_around(f, !f->now, b->at[i]);
    acquire(w, cell->lock);
    add_particle(cell, &w->pool[!f->now], b, i);
    release(cell->lock);
}

static void reset_sums(const struct fluid *f, struct worker *w, struct block *b, long i) {
    (void)f, (void)w;
    b->nearness[i] = 0;
    b->force[i][0] = b->force[i][2] = 0;
    b->force[i][1] = (int64_t)(gravity * force_unit);
}

static void add_nearness(const struct fluid *f, struct worker *w, const struct pair *pair) {
    struct spot a = pair->a, b = pair->b;
    float inside = 1 - pair->square / f->square_reach;
    int64_t nearness = (int64_t)(inside * inside * inside * density_unit);
    acquire(w, a.lock);
    a.block->nearness[a.i] += nearness;
    release(a.lock);
    acquire(w, b.lock);
    b.block->nearness[b.i] += nearness;
    release(b.lock);
}

static void set_density(const struct fluid *f, struct worker *w, struct block *b, long i) {
    (void)w;
    b->density[i] = f->density_factor * (1 + (float)b->nearness[i] / density_unit);
}

static void add_force(const struct fluid *f, struct worker *w, const struct pair *pair) {
    struct spot a = pair->a, b = pair->b;
    struct block *p = a.block, *q = b.block;
    float length = sqrtf(pair->square > 1e-12f ? pair->square : 1e-12f);
    float inside = f->reach - length;
    float both = 1 / (p->density[a.i] * q->density[b.i]);
    float push = f->pressure_factor * inside * inside / length *
                 (p->density[a.i] + q->density[b.i] - 2 * rest_density) * both;
    float drag = f->viscosity_factor * inside * both;
    int64_t force[AXES];
    for (int i = 0; i < AXES; i++) {
        float sum = pair->apart[i] * push + (q->velocity[b.i][i] - p->velocity[a.i][i]) * drag;
        force[i] = (int64_t)(sum * force_unit);
    }
    acquire(w, a.lock);
    for (int i = 0; i < AXES; i++)
        p->force[a.i][i] += force[i];
    release(a.lock);
    acquire(w, b.lock);
    for (int i = 0; i < AXES; i++)
        q->force[b.i][i] -= force[i];
    release(b.lock);
}

typedef void pair_visitor(const struct fluid *, struct worker *, const struct pair *);

static struct spot spot_of(struct cell *cell, struct block *b, long i) {
    return (struct spot){b, i, cell->lock ? cell->lock + i : NULL};
}

// Call `visit` for particle `own` and each near one of the first `count` particles of a cell.
__attribute__((always_inline)) static inline void pair_with(const struct fluid *f, struct worker *w,
                                                            struct spot own, struct cell *cell,
                                                            long count, pair_visitor visit) {
    const float *at = own.block->at[own.i];
    for (struct block *b = cell->first; count > 0; b = b->next, count -= BLOCK)
        for (long i = 0; i < BLOCK && i < count; i++) {
            float x = at[0] - b->at[i][0], y = at[1] - b->at[i][1], z = at[2] - b->at[i][2];
            float square = x * x + y * y + z * z;
            if (square < f->square_reach)
                visit(f, w, &(struct pair){own, spot_of(cell, b, i), {x, y, z}, square});
        }
}

// Find the non-empty cells among the neighbors earlier in the grid. Returns their number.
static int earlier_neighbors(const struct fluid *f, long x, long y, long z, struct cell **found) {
    int count = 0;
    for (int i = 0; i < 13; i++) {
        long nx = x + i % 3 - 1, ny = y + i / 3 % 3 - 1, nz = z + i / 9 - 1;
        if (nx < 0 || nx >= f->size[0] || ny < 0 || ny >= f->size[1] || nz < 0)
            continue;
        struct cell *cell = cell_at(f, f->now, nx, ny, nz);
        if (cell->count)
            found[count++] = cell;
    }
    return count;
}

// Call `visit` for all pairs in neighbor cells whose later cell belongs to worker `w`.
__attribute__((always_inline)) static inline void for_pairs(const struct fluid *f, struct worker *w,
                                                            pair_visitor visit) {
    struct cell *near[13];
    for (long z = w->from[1]; z < w->to[1]; z++)
        for (long y = 0; y < f->size[1]; y++)
            for (long x = w->from[0]; x < w->to[0]; x++) {
                struct cell *cell = cell_at(f, f->now, x, y, z);
                if (!cell->count)
                    continue;
                int neighbors = earlier_neighbors(f, x, y, z, near);
                struct block *b = cell->first;
                for (long i = 0; i < cell->count; i++) {
                    struct spot own = spot_of(cell, b, i % BLOCK);
                    for (int n = 0; n < neighbors; n++)
                        pair_with(f, w, own, near[n], near[n]->count, visit);
                    pair_with(f, w, own, cell, i, visit);
                    if (i % BLOCK == BLOCK - 1)
                        b = b->next;
                }
            }
}

// Push particles away from walls, after adding up the forces between particles.
static void push_from_walls(const struct fluid *f, struct worker *w, struct block *b, long i) {
    for (int k = 0; k < AXES; k++) {
        w->force[k] += b->force[i][k];
        float next = b->at[i][k] + b->half_velocity[i][k] * f->step, push = 0;
        float below = particle_size - (next - low_corner[k]);
        float above = particle_size - (high_corner[k] - next);
        if (below > 1e-10f)
            push += wall_stiffness * below - wall_damping * b->velocity[i][k];
        if (above > 1e-10f)
            push -= wall_stiffness * above + wall_damping * b->velocity[i][k];
        b->force[i][k] += (int64_t)(push * force_unit);
    }
}

// Move a particle. Fails if it jumps over a cell: it could enter another thread's cell without
// locks.
static void move(const struct fluid *f, struct worker *w, struct block *b, long i) {
    (void)w;
    for (int k = 0; k < AXES; k++) {
        float next = b->half_velocity[i][k] + (float)b->force[i][k] / force_unit * f->step;
        if (!(fabsf(next * f->step) < 0.9f * f->cell_size[k]))
            fail("fluidanimate: particle %ld flies over a cell", (long)b->id[i]);
        b->at[i][k] += next * f->step;
        b->velocity[i][k] = (b->half_velocity[i][k] + next) / 2;
        b->half_velocity[i][k] = next;
    }
}

static void reflect(const struct fluid *f, struct worker *w, struct block *b, long i) {
    (void)f, (void)w;
    for (int k = 0; k < AXES; k++) {
        float below = low_corner[k] - b->at[i][k], above = b->at[i][k] - high_corner[k];
        if (below <= 0 && above <= 0)
            continue;
        b->at[i][k] = below > 0 ? low_corner[k] + below : high_corner[k] - above;
        b->velocity[i][k] = -b->velocity[i][k];
        b->half_velocity[i][k] = -b->half_velocity[i][k];
    }
}

// Check that forces between particles cancel out: exactly, since they are integers.
static void check_forces(struct fluid *f) {
    for (int i = 0; i < AXES; i++) {
        int64_t sum = 0, fall = i == 1 ? f->particles * (int64_t)(gravity * force_unit) : 0;
        for (long t = 0; t < f->threads; t++) {
            sum += f->worker[t].force[i];
            f->worker[t].force[i] = 0;
        }
        if (sum != fall)
            fail("fluidanimate: forces add up to %lld on axis %d", (long long)(sum - fall), i);
    }
}

static void find_densities(struct fluid *f, long id) {
    struct worker *w = f->worker + id;
    empty_cells(f, w);
    barrier_wait(&f->barrier);
    for_own(f, w, change_cell);
    barrier_wait(&f->barrier);
    if (id == 0)
        f->now = !f->now;
    barrier_wait(&f->barrier);
    for_own(f, w, reset_sums);
    barrier_wait(&f->barrier);
    for_pairs(f, w, add_nearness);
    barrier_wait(&f->barrier);
    for_own(f, w, set_density);
    barrier_wait(&f->barrier);
}

static void simulate(long id, void *shared) {
    struct fluid *f = shared;
    struct worker *w = f->worker + id;
    for (long frame = 0; frame < f->frames; frame++) {
        find_densities(f, id);
        for_pairs(f, w, add_force);
        barrier_wait(&f->barrier);
        for_own(f, w, push_from_walls);
        barrier_wait(&f->barrier);
        if (id == 0)
            check_forces(f);
        for_own(f, w, move);
        barrier_wait(&f->barrier);
        for_own(f, w, reflect);
        barrier_wait(&f->barrier);
    }
}

static void weigh(long id, void *shared) { find_densities(shared, id); }

// Bisect a rectangle along its longer side until it has a part for each thread.
static void divide(struct fluid *f, const long from[2], const long to[2], long first,
                   long threads) {
    if (threads == 1) {
        struct worker *w = f->worker + first;
        memcpy(w->from, from, sizeof w->from);
        memcpy(w->to, to, sizeof w->to);
        for (long z = from[1]; z < to[1]; z++)
            for (long x = from[0]; x < to[0]; x++)
                f->owner[z * f->size[0] + x] = (int)first;
        return;
    }
    int axis = to[0] - from[0] < to[1] - from[1];
    long low[2] = {from[0], from[1]}, high[2] = {to[0], to[1]};
    low[axis] = high[axis] = from[axis] + (to[axis] - from[axis]) * (threads / 2) / threads;
    divide(f, from, high, first, threads / 2);
    divide(f, low, to, first + threads / 2, threads - threads / 2);
}

static int is_border(const struct fluid *f, long x, long z) {
    for (long nz = z - 1; nz <= z + 1; nz++)
        for (long nx = x - 1; nx <= x + 1; nx++) {
            int inside = nx >= 0 && nx < f->size[0] && nz >= 0 && nz < f->size[2];
            if (inside && f->owner[nz * f->size[0] + nx] != f->owner[z * f->size[0] + x])
                return 1;
        }
    return 0;
}

static void make_locks(struct fluid *f) {
    long columns = 0, next = 0;
    for (long i = 0; i < f->size[0] * f->size[2]; i++)
        columns += is_border(f, i % f->size[0], i / f->size[0]);
    f->border_cells = columns * f->size[1];
    f->locks = suite_memory(sizeof *f->locks * (size_t)(f->border_cells * BLOCK));
    for (long i = 0; i < f->border_cells * BLOCK; i++)
        pthread_mutex_init(f->locks + i, NULL);
    for (long z = 0; z < f->size[2]; z++)
        for (long x = 0; x < f->size[0]; x++)
            for (long y = 0; y < f->size[1] && is_border(f, x, z); y++, next++)
                for (int grid = 0; grid < 2; grid++)
                    cell_at(f, grid, x, y, z)->lock = f->locks + next * BLOCK;
}

// Fill the box with a slope of fluid, nearly at rest density, thrice as high at its high side.
static void pour(struct fluid *f, float per_metre) {
    double width = (double)high_corner[0] - low_corner[0];
    long side = (long)(width * per_metre);
    for (long column = 0; column < side * side; column++) {
        long x = column % side, z = column / side;
        double height = mean_height * (0.5 + ((double)x + 0.5) / (double)side);
        for (long y = 0; y < (long)(height * per_metre); y++) {
            double place[AXES] = {(double)x, (double)y, (double)z};
            uint64_t id = (uint64_t)f->particles++;
            struct block one = {.id = {id}};
            for (int i = 0; i < AXES; i++) {
                double jitter = 0.4 + 0.2 * uniform_at(2, id * AXES + (size_t)i);
                one.at[0][i] = low_corner[i] + (float)((place[i] + jitter) / per_metre);
            }
            add_particle(cell_around(f, 0, one.at[0]), &f->worker[0].pool[0], &one, 0);
        }
    }
}

static struct fluid make_fluid(const struct suite *s, const struct problem *problem, long spins) {
    const double pi = 3.14159265358979323846;
    double spacing = 1 / (double)problem->per_metre, reach = 1.695 * spacing;
    double mass = rest_density * spacing * spacing * spacing, spike = 45 / (pi * pow(reach, 6));
    struct fluid f = {.threads = s->threads, .frames = problem->frames, .reach = (float)reach};
    f.square_reach = f.reach * f.reach;
    f.step = (float)(0.0025 * pow(204 * spacing, 2));
    f.density_factor = (float)(mass * 315 / (64 * pi * pow(reach, 3)));
    f.pressure_factor = (float)(spike * mass * stiffness / 2);
    f.viscosity_factor = (float)(spike * mass * viscosity);
    long cells = 1;
    for (int i = 0; i < AXES; i++) {
        float range = high_corner[i] - low_corner[i];
        f.size[i] = (long)(range / f.reach);
        f.cell_size[i] = range / (float)f.size[i];
        cells *= f.size[i];
    }
    barrier_init(&f.barrier, f.threads, spins);
    for (int grid = 0; grid < 2; grid++)
        f.grid[grid] = suite_memory(sizeof *f.grid[0] * (size_t)cells);
    f.owner = suite_memory(sizeof *f.owner * (size_t)(f.size[0] * f.size[2]));
    f.worker = suite_memory(sizeof *f.worker * (size_t)f.threads);
    divide(&f, (long[]){0, 0}, (long[]){f.size[0], f.size[2]}, 0, f.threads);
    make_locks(&f);
    pour(&f, problem->per_metre);
    return f;
}

static void free_fluid(struct fluid *f) {
    for (long t = 0; t < f->threads; t++)
        for (int grid = 0; grid < 2; grid++) {
            struct pool *pool = &f->worker[t].pool[grid];
            for (long i = 0; i < pool->chunks; i++)
                free(pool->chunk[i]);
            free(pool->chunk);
        }
    free(f->grid[0]);
    free(f->grid[1]);
    free(f->owner);
    free(f->worker);
    free(f->locks);
}

struct place {
    float at[AXES], density;
};

// Return all particles by id.
static struct place *list_particles(const struct fluid *f) {
    struct place *list = suite_memory(sizeof *list * (size_t)f->particles);
    long count = 0;
    for (long c = 0; c < f->size[0] * f->size[1] * f->size[2]; c++) {
        const struct cell *cell = f->grid[f->now] + c;
        const struct block *b = cell->first;
        for (long k = 0; k < cell->count; k++, count++) {
            long i = k % BLOCK;
            struct place *p = list + b->id[i];
            memcpy(p->at, b->at[i], sizeof p->at);
            p->density = b->density[i];
            if (i == BLOCK - 1)
                b = b->next;
        }
    }
    if (count != f->particles)
        fail("fluidanimate: %ld of %ld particles are left", count, f->particles);
    return list;
}

// Compare densities of some particles with sums over all particles.
static void check_densities(struct suite *s, const struct fluid *f, const struct place *list) {
    enum { SAMPLES = 50 };
    for (long i = 0; i < SAMPLES; i++) {
        const struct place *p = list + f->particles / SAMPLES * i;
        double sum = 0;
        for (long j = 0; j < f->particles; j++) {
            double square = 0;
            for (int k = 0; k < AXES; k++)
                square += pow((double)p->at[k] - list[j].at[k], 2);
            double inside = 1 - square / f->square_reach;
            sum += inside > 0 ? inside * inside * inside : 0;
        }
        suite_verify(s, "a density", p->density, f->density_factor * sum, 1e-5);
    }
}

static uint64_t solve(struct suite *s, const struct problem *problem, long spins) {
    struct fluid f = make_fluid(s, problem, spins);
    suite_start(s);
    team_run(f.threads, simulate, &f);
    suite_stop(s);
    suite_count(s, "barriers", atomic_load(&f.barrier.episodes));
    long locks = 0;
    for (long t = 0; t < f.threads; t++)
        locks += f.worker[t].locks;
    suite_count(s, "locks", locks);
    suite_count(s, "border_cells", f.border_cells);
    team_run(f.threads, weigh, &f);
    struct place *list = list_particles(&f);
    check_densities(s, &f, list);
    uint64_t hash = 0;
    for (long i = 0; i < f.particles; i++)
        hash = suite_hash(hash, list[i].at, sizeof list[i].at);
    free(list);
    free_fluid(&f);
    return hash;
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct problem problems[] = {{204, 5}, {390, 10}, {553, 18}, {798, 22}};
    long spins = take_spins(&argc, argv);
    struct suite s = suite_parse("parsec/fluidanimate", classes, argc, argv);
    do
        suite_checksum(&s, solve(&s, &problems[s.class_index], spins));
    while (suite_next(&s));
    return suite_report(&s);
}
