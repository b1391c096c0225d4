/* SPDX-License-Identifier: MIT */
// Gravity of many bodies by the Barnes-Hut method, as Barnes of SPLASH-2: Woo, Ohara, Torrie,
// Singh, Gupta, "The SPLASH-2 Programs: Characterization and Methodological Considerations", ISCA
// 1995; Singh, Holt, Totsuka, Gupta, Hennessy, "Load Balancing and Data Locality in Hierarchical
// N-body Methods", 1995. Cells have quadrupoles, and leaves up to 10 bodies. The bodies are two
// clusters of Plummer's model (Aarseth, Henon, Wielen, 1974).
//
// Synchronization: a time step has 4 barriers, and these phases:
// - Threads insert their bodies in the tree. To change a child of a cell they lock the cell, in an
//   array of 2048 locks.
// - They sum up the cells that they have made. They spin, without pause or yield, until other
//   threads have summed up the children.
// - They take their zone of the tree's cost, compute forces and move their bodies. They merge the
//   limits of space under one lock.
//
// Zones have equal costs by the previous step, so imbalance is small in the forces, but not in the
// insertions and sums.
//
// Differences: a zone follows the order of octants, not a rotated one. Leaves have copies of their
// bodies' positions, since the original moves bodies while others compute. A leaf's bodies are
// sorted by number, so that results do not depend on the threads.
#include "parmacs.h"

enum { LEAF = 10, LOCKS = 2048, DEPTH = 30, CHUNK = 256, OCTANTS = 8 };

static const char *const classes[] = {"small", "test", "medium", "large", NULL};
static const struct {
    long bodies, steps;
    double energy;
} sizes[] = {{16384, 4, -0.16614316304850},
             {1024, 4, -0.15634651542819},
             {32768, 9, -0.16457950759690},
             {65536, 16, -0.16510434726211}};

static const double time_step = 0.025, softening = 0.05, opening = 1;

struct body {
    _Alignas(LINE) double mass;
    double at[3], speed[3], pull[3], potential;
    uint32_t place[3]; // in the root cube, in units of its side / 2^DEPTH
    long cost;         // interactions in the previous step
};

// The quadrupole has xx, yy, zz, xy, xz, yz.
struct moments {
    double mass, centre[3], quadrupole[6];
};

struct node {
    int is_leaf;       // never changes: threads read it without a lock
    int level;         // 0: the root
    uint32_t place[3]; // place of the corner
    atomic_int summed; // 1: `moments` and `cost` are valid
    struct moments moments;
    long cost;
};

struct leaf {
    struct node node;
    int count, body[LEAF]; // protected by the lock of the cell above
    // Copies of the bodies' data, since other threads move the bodies meanwhile.
    double mass[LEAF], at[LEAF][3];
    long cost[LEAF];
};

struct cell {
    struct node node;
    unsigned number; // chooses the lock
    struct node *_Atomic child[OCTANTS];
};

// Items of one size, in the order in which a thread made them.
struct pool {
    size_t size;
    long used, chunks;
    char **chunk;
};

struct box {
    double low[3], high[3];
};

// One thread's data.
struct zone {
    struct pool cells, leaves;
    int *own; // the thread's bodies
    long count, room;
    double kinetic, potential;
};

struct barnes {
    long count, steps;
    struct body *bodies;
    struct zone *zones;
    struct cell *root;
    struct box box[2];               // of this step and the next; protected by count_lock
    double kinetic[2], potential[2]; // of the first step and the last
    pthread_mutex_t count_lock, cell_locks[LOCKS];
};

static void *pool_item(const struct pool *p, long i) {
    return p->chunk[i / CHUNK] + (size_t)(i % CHUNK) * p->size;
}

static void *pool_take(struct pool *p) {
    if (p->used == p->chunks * CHUNK) {
        p->chunk = realloc(p->chunk, sizeof *p->chunk * (size_t)(p->chunks + 1));
        if (!p->chunk)
            fail("no memory for the tree");
        p->chunk[p->chunks++] = suite_memory(p->size * CHUNK);
    }
    return pool_item(p, p->used++);
}

static void pool_release(struct pool *p) {
    while (p->chunks)
        free(p->chunk[--p->chunks]);
    free(p->chunk);
}

static int octant(const uint32_t *place, int level) {
    int bit = DEPTH - 1 - level;
    return (int)((place[0] >> bit & 1) | (place[1] >> bit & 1) << 1 | (place[2] >> bit & 1) << 2);
}

static void set_place(struct node *n, int level, const uint32_t *place) {
    n->level = level;
    for (int axis = 0; axis < 3; axis++)
        n->place[axis] = place[axis] >> (DEPTH - level) << (DEPTH - level);
    atomic_store_explicit(&n->summed, 0, memory_order_relaxed);
}

static struct cell *make_cell(struct zone *z, long id, int level, const uint32_t *place) {
    struct cell *c = pool_take(&z->cells);
    c->node.is_leaf = 0;
    set_place(&c->node, level, place);
    c->number = 1009u * (unsigned)id + (unsigned)z->cells.used;
    for (int i = 0; i < OCTANTS; i++)
        atomic_store_explicit(&c->child[i], NULL, memory_order_relaxed);
    return c;
}

static struct leaf *make_leaf(struct zone *z, int level, const uint32_t *place) {
    struct leaf *l = pool_take(&z->leaves);
    l->node.is_leaf = 1;
    set_place(&l->node, level, place);
    l->count = 0;
    return l;
}

// Make a cell in place of a full leaf, whose bodies move to leaves below the cell. No other thread
// can reach the cell yet.
static struct cell *split(struct barnes *b, struct zone *z, long id, struct leaf *full) {
    int level = full->node.level, bodies[LEAF], count = full->count;
    struct cell *c = make_cell(z, id, level, full->node.place);
    struct leaf *below[OCTANTS] = {NULL};
    memcpy(bodies, full->body, sizeof bodies);
    for (int i = 0; i < count; i++) {
        const uint32_t *place = b->bodies[bodies[i]].place;
        int to = octant(place, level);
        if (!below[to]) {
            below[to] = i ? make_leaf(z, level + 1, place) : full;
            if (!i) {
                set_place(&full->node, level + 1, place);
                full->count = 0;
            }
            atomic_store_explicit(&c->child[to], &below[to]->node, memory_order_relaxed);
        }
        below[to]->body[below[to]->count++] = bodies[i];
    }
    return c;
}

// Change the child of a cell that contains a body. Returns whether the body is in the tree now.
static int insert_below(struct barnes *b, struct zone *z, long id, struct cell *c, int body) {
    const uint32_t *place = b->bodies[body].place;
    struct node *_Atomic *slot = &c->child[octant(place, c->node.level)];
    pthread_mutex_t *mutex = b->cell_locks + c->number % LOCKS;
    int level = c->node.level + 1, done = 0;
    lock(mutex);
    struct node *child = atomic_load_explicit(slot, memory_order_relaxed);
    if (!child || child->is_leaf) {
        struct leaf *l = child ? (struct leaf *)child : make_leaf(z, level, place);
        if (l->count < LEAF) {
            l->body[l->count++] = body;
            child = &l->node;
            done = 1;
        } else if (level < DEPTH) {
            child = &split(b, z, id, l)->node;
        } else {
            fail("more than %d bodies are at one place", LEAF);
        }
        atomic_store_explicit(slot, child, memory_order_release);
    }
    unlock(mutex);
    return done;
}

static void insert(struct barnes *b, struct zone *z, long id, int body) {
    const uint32_t *place = b->bodies[body].place;
    struct cell *c = b->root;
    for (;;) {
        struct node *child =
            atomic_load_explicit(&c->child[octant(place, c->node.level)], memory_order_acquire);
        if (child && !child->is_leaf)
            c = (struct cell *)child;
        else if (insert_below(b, z, id, c, body))
            return;
    }
}

static double cube_side(const struct box *box) {
    double side = 0;
    for (int axis = 0; axis < 3; axis++)
        side = fmax(side, box->high[axis] - box->low[axis]);
    return side * 1.00002;
}

static void locate(struct body *body, const struct box *box) {
    double side = cube_side(box);
    for (int axis = 0; axis < 3; axis++) {
        double corner = (box->low[axis] + box->high[axis] - side) / 2;
        body->place[axis] = (uint32_t)((body->at[axis] - corner) / side * (1u << DEPTH));
    }
}

// Add a point or a sum of points to `sum`. Pre: the centre of `sum` is known.
static void add_moments(struct moments *sum, const struct moments *part) {
    double d[3];
    for (int axis = 0; axis < 3; axis++)
        d[axis] = part->centre[axis] - sum->centre[axis];
    double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    const double product[6] = {3 * d[0] * d[0] - square, 3 * d[1] * d[1] - square,
                               3 * d[2] * d[2] - square, 3 * d[0] * d[1],
                               3 * d[0] * d[2],          3 * d[1] * d[2]};
    for (int i = 0; i < 6; i++)
        sum->quadrupole[i] += part->quadrupole[i] + part->mass * product[i];
}

static void sum_moments(struct moments *sum, const struct moments *parts, int count) {
    *sum = (struct moments){0};
    for (int i = 0; i < count; i++) {
        sum->mass += parts[i].mass;
        for (int axis = 0; axis < 3; axis++)
            sum->centre[axis] += parts[i].mass * parts[i].centre[axis];
    }
    for (int axis = 0; axis < 3; axis++)
        sum->centre[axis] /= sum->mass;
    for (int i = 0; i < count; i++)
        add_moments(sum, parts + i);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void sum_leaf(const struct barnes *b, struct leaf *l) {
    struct moments parts[LEAF];
    qsort(l->body, (size_t)l->count, sizeof *l->body, by_number);
    l->node.cost = 0;
    for (int i = 0; i < l->count; i++) {
        const struct body *body = b->bodies + l->body[i];
        l->mass[i] = body->mass;
        memcpy(l->at[i], body->at, sizeof body->at);
        l->cost[i] = body->cost;
        l->node.cost += body->cost;
        parts[i] = (struct moments){.mass = body->mass};
        memcpy(parts[i].centre, body->at, sizeof body->at);
    }
    sum_moments(&l->node.moments, parts, l->count);
    atomic_store_explicit(&l->node.summed, 1, memory_order_release);
}

static void sum_cell(struct cell *c) {
    struct moments parts[OCTANTS];
    int count = 0;
    c->node.cost = 0;
    for (int i = 0; i < OCTANTS; i++) {
        struct node *child = atomic_load_explicit(&c->child[i], memory_order_relaxed);
        if (!child)
            continue;
        mine.spins += !atomic_load_explicit(&child->summed, memory_order_acquire);
        while (!atomic_load_explicit(&child->summed, memory_order_acquire))
            continue;
        parts[count++] = child->moments;
        c->node.cost += child->cost;
    }
    sum_moments(&c->node.moments, parts, count);
    atomic_store_explicit(&c->node.summed, 1, memory_order_release);
}

// Sum up the thread's own leaves, then cells. A leaf that was split is older than the cell above
// it. Cells below others are newer, so no two threads wait for each other.
static void sum_own(struct barnes *b, struct zone *z) {
    for (long i = z->leaves.used; i-- > 0;)
        sum_leaf(b, pool_item(&z->leaves, i));
    for (long i = z->cells.used; i-- > 0;)
        sum_cell(pool_item(&z->cells, i));
}

static void own(struct zone *z, int body) {
    if (z->count == z->room) {
        z->room = 2 * z->room + 64;
        z->own = realloc(z->own, sizeof *z->own * (size_t)z->room);
        if (!z->own)
            fail("no memory for a zone");
    }
    z->own[z->count++] = body;
}

// Own the bodies whose costs begin in [low, high). before: cost of all bodies before the node.
static void take_zone(struct zone *z, const struct node *n, long before, long low, long high) {
    if (before >= high || before + n->cost <= low)
        return;
    if (n->is_leaf) {
        const struct leaf *l = (const struct leaf *)n;
        for (int i = 0; i < l->count; before += l->cost[i++])
            if (before >= low && before < high)
                own(z, l->body[i]);
        return;
    }
    const struct cell *c = (const struct cell *)n;
    for (int i = 0; i < OCTANTS; i++) {
        const struct node *child = atomic_load_explicit(&c->child[i], memory_order_relaxed);
        if (child) {
            take_zone(z, child, before, low, high);
            before += child->cost;
        }
    }
}

// Data of a body and its walk over the tree.
struct walk {
    const struct body *body;
    int number;
    double side2; // square of the root cube's side
    double pull[3], potential;
    long cost;
};

static void add_point(struct walk *w, double mass, const double *at) {
    double d[3], square = softening * softening;
    for (int axis = 0; axis < 3; axis++) {
        d[axis] = at[axis] - w->body->at[axis];
        square += d[axis] * d[axis];
    }
    double inverse = 1 / sqrt(square), weight = mass * inverse;
    w->potential -= weight;
    weight *= inverse * inverse;
    for (int axis = 0; axis < 3; axis++)
        w->pull[axis] += weight * d[axis];
    w->cost++;
}

static void add_node(struct walk *w, const struct moments *m, const double *d, double square) {
    const double *q = m->quadrupole;
    double inverse = 1 / sqrt(square), inverse2 = inverse * inverse;
    double inverse5 = inverse2 * inverse2 * inverse;
    double along[3] = {q[0] * d[0] + q[3] * d[1] + q[4] * d[2],
                       q[3] * d[0] + q[1] * d[1] + q[5] * d[2],
                       q[4] * d[0] + q[5] * d[1] + q[2] * d[2]};
    double both = d[0] * along[0] + d[1] * along[1] + d[2] * along[2];
    double weight = m->mass * inverse * inverse2 + 2.5 * both * inverse5 * inverse2;
    w->potential -= m->mass * inverse + 0.5 * both * inverse5;
    for (int axis = 0; axis < 3; axis++)
        w->pull[axis] += weight * d[axis] - inverse5 * along[axis];
    w->cost++;
}

static int is_inside(const struct body *body, const struct node *n) {
    uint32_t different = 0;
    for (int axis = 0; axis < 3; axis++)
        different |= (body->place[axis] ^ n->place[axis]) >> (DEPTH - n->level);
    return !different;
}

static void walk_tree(struct walk *w, const struct node *n, double side2) {
    double d[3], square = 0;
    for (int axis = 0; axis < 3; axis++) {
        d[axis] = n->moments.centre[axis] - w->body->at[axis];
        square += d[axis] * d[axis];
    }
    if (square * opening * opening > side2 && !is_inside(w->body, n)) {
        add_node(w, &n->moments, d, square + softening * softening);
    } else if (n->is_leaf) {
        const struct leaf *l = (const struct leaf *)n;
        for (int i = 0; i < l->count; i++)
            if (l->body[i] != w->number)
                add_point(w, l->mass[i], l->at[i]);
    } else {
        const struct cell *c = (const struct cell *)n;
        for (int i = 0; i < OCTANTS; i++) {
            const struct node *child = atomic_load_explicit(&c->child[i], memory_order_relaxed);
            if (child)
                walk_tree(w, child, side2 / 4);
        }
    }
}

static void merge(struct box *box, const double *low, const double *high) {
    for (int axis = 0; axis < 3; axis++) {
        box->low[axis] = fmin(box->low[axis], low[axis]);
        box->high[axis] = fmax(box->high[axis], high[axis]);
    }
}

static struct box empty_box(void) {
    return (struct box){{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
}

// Move a body by leapfrog: the second half of the previous step unless this is the first, then the
// first half of this one.
static void move(struct zone *z, struct body *body, int first) {
    double square = 0;
    for (int axis = 0; axis < 3; axis++) {
        double half = body->pull[axis] * time_step / 2;
        body->speed[axis] += first ? 0 : half;
        square += body->speed[axis] * body->speed[axis];
        body->speed[axis] += half;
        body->at[axis] += body->speed[axis] * time_step;
    }
    z->kinetic += body->mass * square / 2;
    z->potential += body->mass * body->potential / 2;
}

static void compute_forces(struct barnes *b, struct zone *z, double side) {
    for (long i = 0; i < z->count; i++) {
        struct body *body = b->bodies + z->own[i];
        struct walk w = {.body = body, .number = z->own[i]};
        walk_tree(&w, &b->root->node, side * side);
        memcpy(body->pull, w.pull, sizeof w.pull);
        body->potential = w.potential;
        body->cost = w.cost;
    }
}

static void do_step(struct barnes *b, struct team *team, long id, long step) {
    struct zone *z = b->zones + id;
    struct box limits = empty_box(), *box = b->box + step % 2, *next = b->box + (step + 1) % 2;
    z->cells.used = z->leaves.used = 0;
    if (id == 0)
        b->root = make_cell(z, id, 0, (const uint32_t[3]){0, 0, 0});
    barrier_wait(&team->barrier);
    double side = cube_side(box);
    for (long i = 0; i < z->count; i++) {
        locate(b->bodies + z->own[i], box);
        insert(b, z, id, z->own[i]);
    }
    barrier_wait(&team->barrier);
    sum_own(b, z);
    barrier_wait(&team->barrier);
    if (id == 0)
        *box = empty_box();
    long cost = b->root->node.cost;
    z->count = 0;
    take_zone(z, &b->root->node, 0, share_start(cost, team->threads, id),
              share_start(cost, team->threads, id + 1));
    compute_forces(b, z, side);
    z->kinetic = z->potential = 0;
    for (long i = 0; i < z->count; i++) {
        struct body *body = b->bodies + z->own[i];
        move(z, body, step == 0);
        merge(&limits, body->at, body->at);
    }
    lock(&b->count_lock);
    merge(next, limits.low, limits.high);
    if (step == 0 || step == b->steps - 1) {
        b->kinetic[step > 0] += z->kinetic;
        b->potential[step > 0] += z->potential;
    }
    unlock(&b->count_lock);
    barrier_wait(&team->barrier);
}

static void work(struct team *team, long id, void *shared) {
    struct barnes *b = shared;
    long first = share_start(b->count, team->threads, id);
    b->zones[id].count = 0;
    for (long i = first; i < first + share(b->count, team->threads, id); i++)
        own(b->zones + id, (int)i);
    barrier_wait(&team->barrier);
    for (long step = 0; step < b->steps; step++)
        do_step(b, team, id, step);
}

static double next_uniform(uint64_t *drawn) { return uniform_at(6, (*drawn)++); }

static void random_direction(uint64_t *drawn, double length, double *to) {
    double square;
    do {
        square = 0;
        for (int axis = 0; axis < 3; axis++) {
            to[axis] = 2 * next_uniform(drawn) - 1;
            square += to[axis] * to[axis];
        }
    } while (square > 1 || square == 0);
    for (int axis = 0; axis < 3; axis++)
        to[axis] *= length / sqrt(square);
}

// Make a body of a cluster by Plummer's model. The units are those of Heggie and Mathieu (1986),
// except for the cluster's mass, which is 1/2.
static void make_body(struct body *body, uint64_t *drawn) {
    double scale = 3 * acos(-1) / 16, radius, q;
    do
        radius = 1 / sqrt(pow(next_uniform(drawn), -2.0 / 3) - 1);
    while (!(radius < 9)); // the outer 2 % of the mass extend to infinity
    random_direction(drawn, radius * scale, body->at);
    do
        q = next_uniform(drawn);
    while (0.1 * next_uniform(drawn) > q * q * pow(1 - q * q, 3.5));
    double speed = q * sqrt(2) / pow(1 + radius * radius, 0.25);
    random_direction(drawn, speed / sqrt(2 * scale), body->speed);
}

// Make all bodies. The second half is a copy of the first, at a distance.
static void make_bodies(struct barnes *b) {
    uint64_t drawn = 0;
    double centre[3] = {0}, drift[3] = {0};
    long half = b->count / 2;
    memset(b->bodies, 0, sizeof *b->bodies * (size_t)b->count);
    for (long i = 0; i < b->count; i++) {
        struct body *body = b->bodies + i;
        if (i < half)
            make_body(body, &drawn);
        else
            *body = b->bodies[i - half];
        for (int axis = 0; axis < 3; axis++) {
            body->at[axis] += i < half ? 0 : 4;
            centre[axis] += body->at[axis] / (double)b->count;
            drift[axis] += body->speed[axis] / (double)b->count;
        }
        body->mass = 1 / (double)b->count;
        body->cost = 1;
    }
    b->box[0] = b->box[1] = empty_box();
    for (long i = 0; i < b->count; i++) {
        struct body *body = b->bodies + i;
        for (int axis = 0; axis < 3; axis++) {
            body->at[axis] -= centre[axis];
            body->speed[axis] -= drift[axis];
        }
        merge(&b->box[0], body->at, body->at);
    }
}

static void verify(struct suite *s, const struct barnes *b) {
    double first = b->kinetic[0] + b->potential[0], last = b->kinetic[1] + b->potential[1];
    suite_verify(s, "the energy after the last step", last, first, 1e-3);
    suite_verify(s, "the energy", last, sizes[s->class_index].energy, 1e-7);
    uint64_t checksum = 0;
    for (long i = 0; i < b->count; i++)
        checksum = suite_hash(checksum, b->bodies[i].at, sizeof b->bodies[i].at);
    suite_checksum(s, checksum);
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("splash/barnes", classes, argc, argv);
    struct barnes b = {.count = sizes[s.class_index].bodies,
                       .steps = sizes[s.class_index].steps,
                       .count_lock = PTHREAD_MUTEX_INITIALIZER};
    b.bodies = suite_memory(sizeof *b.bodies * (size_t)b.count);
    b.zones = suite_memory(sizeof *b.zones * (size_t)s.threads);
    for (long i = 0; i < s.threads; i++) {
        b.zones[i].cells.size = sizeof(struct cell);
        b.zones[i].leaves.size = sizeof(struct leaf);
    }
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&b.cell_locks[i], NULL);
    do {
        make_bodies(&b);
        memset(b.kinetic, 0, sizeof b.kinetic);
        memset(b.potential, 0, sizeof b.potential);
        team_run(&s, work, &b);
        verify(&s, &b);
    } while (suite_next(&s));
    for (long i = 0; i < s.threads; i++) {
        pool_release(&b.zones[i].cells);
        pool_release(&b.zones[i].leaves);
        free(b.zones[i].own);
    }
    free(b.bodies);
    free(b.zones);
    return suite_report(&s);
}
