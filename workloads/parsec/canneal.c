/* SPDX-License-Identifier: MIT */
// Places the elements of a netlist on a chip by simulated annealing, to shorten its wires, as
// canneal of PARSEC. Specification: C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC Benchmark
// Suite: Characterization and Architectural Implications", PACT 2008, and C. Bienia, "Benchmarking
// Modern Multiprocessors", dissertation, Princeton 2011.
//
// A move draws two elements and computes the change of their wires' length if they swap locations.
// A thread accepts all moves that shorten wires, and others with a probability that falls with the
// temperature, which each step divides by 1.5. The threads divide the moves of a step evenly.
//
// Synchronization: one barrier per step, and no locks. Each element has an atomic pointer to its
// location. A swap takes the pointer of one element away, exchanges that of the other, and sets the
// first; other threads spin on a pointer that is away. Threads read locations while others change
// them. So a decision may use an old location ("aggressive synchronization"), which sometimes costs
// a wrong move.
//
// Differences: the program generates its netlist. The threads have random generators of their own.
// A move of two connected elements leaves out their wire, which keeps its length. The classes
// small, medium and large have the published elements, and moves per step, of simsmall, simmedium
// and simlarge. They have 32, 96 and 256 steps; the published inputs have 32, 64 and 128.
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "../suite.h"
#include "draw.h"

enum { FAN_IN = 5, NEAR = 12 };

struct location {
    int x, y;
};

// An element has a cache line of its own; in the original it has one or more.
struct element {
    alignas(64) _Atomic(const struct location *) place; // NULL: a thread is swapping it
    uint32_t first, wires;                              // range in `other`
};

struct netlist {
    long elements, side; // side: of the square chip
    struct location *location;
    struct element *element;
    uint32_t *other; // elements at the far ends of each element's wires
};

struct class {
    long elements, moves, steps; // moves: of all threads per step
    double begun, ended;         // length of all wires
    double tolerance;            // relative, of `ended`; several times the spread of runs
};

struct job {
    struct netlist net;
    const struct class *class;
    long threads;
    pthread_barrier_t barrier;
};

struct worker {
    alignas(LINE) pthread_t thread;
    struct job *job;
    long index;
    uint64_t random;
    long barriers, swaps, spins;
    long change; // sum of the expected changes of accepted moves
};

// --- the netlist ---------------------------------------------------------------------------------

// Return a random location at most NEAR columns and rows away from location `at`.
static long near_location(const struct netlist *net, uint64_t *random, long at) {
    long x = at % net->side + draw_below(random, 2 * NEAR + 1) - NEAR;
    long y = at / net->side + draw_below(random, 2 * NEAR + 1) - NEAR;
    x = x < 0 ? -x : x >= net->side ? 2 * net->side - 2 - x : x;
    y = y < 0 ? -y : y;
    return x + y * net->side < net->elements ? x + y * net->side : at;
}

// Connect the elements so that a good placement exists, in which four of five wires are short. The
// program does not know it. Each element has FAN_IN wires from others.
static void connect(struct netlist *net) {
    size_t wires = (size_t)net->elements * FAN_IN;
    uint32_t *from = suite_memory(wires * sizeof *from);
    uint32_t *hidden = suite_memory((size_t)net->elements * sizeof *hidden);
    uint64_t random = 1;
    for (long i = 0; i < net->elements; i++) {
        long k = draw_below(&random, i + 1);
        hidden[i] = hidden[k];
        hidden[k] = (uint32_t)i;
    }
    for (long place = 0; place < net->elements; place++) {
        uint32_t to = hidden[place];
        for (long k = 0; k < FAN_IN; k++) {
            long other = place;
            while (other == place)
                other = k ? near_location(net, &random, place) : draw_below(&random, net->elements);
            from[to * FAN_IN + k] = hidden[other];
            net->element[to].wires++;
            net->element[hidden[other]].wires++;
        }
    }
    for (long i = 1; i < net->elements; i++)
        net->element[i].first = net->element[i - 1].first + net->element[i - 1].wires;
    for (long i = 0; i < net->elements; i++)
        net->element[i].wires = 0;
    for (size_t i = 0; i < wires; i++) {
        struct element *to = &net->element[i / FAN_IN], *source = &net->element[from[i]];
        net->other[to->first + to->wires++] = from[i];
        net->other[source->first + source->wires++] = (uint32_t)(i / FAN_IN);
    }
    free(hidden);
    free(from);
}

static struct netlist make_netlist(long elements) {
    struct netlist net = {.elements = elements, .side = (long)ceil(sqrt((double)elements))};
    net.location = suite_memory((size_t)elements * sizeof *net.location);
    net.element = suite_memory((size_t)elements * sizeof *net.element);
    net.other = suite_memory(2 * (size_t)elements * FAN_IN * sizeof *net.other);
    for (long i = 0; i < elements; i++)
        net.location[i] = (struct location){(int)(i % net.side), (int)(i / net.side)};
    connect(&net);
    return net;
}

static void place_in_order(struct netlist *net) {
    for (long i = 0; i < net->elements; i++)
        atomic_init(&net->element[i].place, &net->location[i]);
}

static long distance(const struct location *a, const struct location *b) {
    return labs((long)a->x - b->x) + labs((long)a->y - b->y);
}

// Return the length of all wires. Fails if two elements share a location. Pre: no swaps.
static double length_of_wires(const struct netlist *net) {
    char *taken = suite_memory((size_t)net->elements);
    long sum = 0;
    for (long i = 0; i < net->elements; i++) {
        const struct element *e = &net->element[i];
        const struct location *place = atomic_load(&e->place);
        long number = place - net->location;
        if (!place || number < 0 || number >= net->elements || taken[number]++)
            fail("parsec/canneal: element %ld has no location of its own", i);
        for (uint32_t k = 0; k < e->wires; k++)
            sum += distance(place, atomic_load(&net->element[net->other[e->first + k]].place));
    }
    free(taken);
    return (double)(sum / 2); // each wire has two ends
}

// --- locations -----------------------------------------------------------------------------------

static const struct location *read_place(struct worker *me, struct element *e) {
    const struct location *place;
    while (!(place = atomic_load_explicit(&e->place, memory_order_acquire)))
        me->spins++;
    return place;
}

// Exchange an element's location, or take it away if `next` is NULL. Returns the old one.
static const struct location *exchange_place(struct worker *me, struct element *e,
                                             const struct location *next) {
    const struct location *place = read_place(me, e);
    while (!atomic_compare_exchange_weak_explicit(&e->place, &place, next, memory_order_acq_rel,
                                                  memory_order_relaxed))
        place = read_place(me, e);
    return place;
}

// Swap the locations of two elements, in the order of addresses, so that no two threads wait for
// each other.
static void swap(struct worker *me, struct element *a, struct element *b) {
    struct element *low = a < b ? a : b, *high = a < b ? b : a;
    const struct location *place = exchange_place(me, low, NULL);
    place = exchange_place(me, high, place);
    atomic_store_explicit(&low->place, place, memory_order_release);
    me->swaps++;
}

// --- annealing -----------------------------------------------------------------------------------

// Return the change of the length of a's wires if it moves to b's location.
static long change_of(struct worker *me, struct element *a, const struct location *from,
                      struct element *b, const struct location *to) {
    const struct netlist *net = &me->job->net;
    long change = 0;
    for (uint32_t k = 0; k < a->wires; k++) {
        struct element *other = &net->element[net->other[a->first + k]];
        if (other == b)
            continue;
        const struct location *far = read_place(me, other);
        change += distance(far, to) - distance(far, from);
    }
    return change;
}

static void move(struct worker *me, struct element *a, struct element *b, double temperature) {
    const struct location *at_a = read_place(me, a), *at_b = read_place(me, b);
    long change = change_of(me, a, at_a, b, at_b) + change_of(me, b, at_b, a, at_a);
    if (change >= 0 && exp(-(double)change / temperature) <= draw_uniform(&me->random))
        return;
    me->change += change;
    swap(me, a, b);
}

static void *anneal(void *argument) {
    struct worker *me = argument;
    struct job *job = me->job;
    struct netlist *net = &job->net;
    long moves = share(job->class->moves, job->threads, me->index);
    double temperature = 2000;
    struct element *b = &net->element[draw_below(&me->random, net->elements)];
    for (long step = 0; step < job->class->steps; step++) {
        temperature /= 1.5;
        for (long i = 0; i < moves; i++) {
            struct element *a = b; // it is in the cache
            while (a == b)
                b = &net->element[draw_below(&me->random, net->elements)];
            move(me, a, b, temperature);
        }
        pthread_barrier_wait(&job->barrier);
        me->barriers++;
    }
    return NULL;
}

static void run_threads(struct job *job, struct worker *worker) {
    for (long i = 0; i < job->threads; i++) {
        worker[i].job = job;
        worker[i].index = i;
        worker[i].random = ((uint64_t)i + 1) << 32;
        int error = pthread_create(&worker[i].thread, NULL, anneal, &worker[i]);
        if (error)
            fail("parsec/canneal: a thread cannot be created: %s", strerror(error));
    }
    for (long i = 0; i < job->threads; i++)
        pthread_join(worker[i].thread, NULL);
}

static void solve(struct suite *s, struct job *job) {
    long change = 0;
    struct worker *worker = suite_memory(sizeof *worker * (size_t)s->threads);
    place_in_order(&job->net);
    suite_verify(s, "length at first", length_of_wires(&job->net), job->class->begun, 0);
    suite_start(s);
    run_threads(job, worker);
    suite_stop(s);
    for (long i = 0; i < s->threads; i++) {
        suite_count(s, "barriers", worker[i].barriers);
        suite_count(s, "swaps", worker[i].swaps);
        suite_count(s, "spins", worker[i].spins);
        change += worker[i].change;
    }
    double length = length_of_wires(&job->net);
    suite_verify(s, "length in the end", length, job->class->ended, job->class->tolerance);
    if (s->threads == 1) // then no decision used an old location
        suite_verify(s, "length by changes", job->class->begun + (double)change, length, 0);
    free(worker);
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct class class[] = {{10000, 5000, 16, 3338567, 2622000, 0.02},
                                         {100000, 10000, 32, 105475148, 86910000, 0.005},
                                         {200000, 15000, 96, 298175971, 227240000, 0.005},
                                         {400000, 15000, 256, 843065694, 624690000, 0.005}};
    struct suite s = suite_parse("parsec/canneal", classes, argc, argv);
    struct job job = {.class = &class[s.class_index], .threads = s.threads};
    job.net = make_netlist(job.class->elements);
    pthread_barrier_init(&job.barrier, NULL, (unsigned)s.threads);
    do
        solve(&s, &job);
    while (suite_next(&s));
    pthread_barrier_destroy(&job.barrier);
    free(job.net.location);
    free(job.net.element);
    free(job.net.other);
    return suite_report(&s);
}
