/* SPDX-License-Identifier: MIT */
// Clusters a stream of points online: finds k medians of each chunk, moves them to the means of
// their points, and clusters these again at the end. Specification: L. O'Callaghan, N. Mishra, A.
// Meyerson, S. Guha, R. Motwani, "Streaming-Data Algorithms for High-Quality Clustering", ICDE
// 2002; C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC Benchmark Suite", PACT 2008.
//
// The number of medians follows from the price of a median, found by bisection. For a price, a
// random pass opens medians. Then a local search tries feasible points, 179 in a pass, until a pass
// saves little. A try computes the gain of opening a point and of closing medians that it replaces.
//
// Synchronization: threads own fixed blocks of points, end with each chunk, and meet at barriers
// (team.h; --spins N: poll before blocking). A try has 9 barriers; almost all its work is between
// two of them. In the random pass, thread 0 decides; the others wait on a condition variable for
// each median that it opens. Thread 0 alone shuffles, adds up, and chooses. JSON counts:
// "barriers": episodes; "openings": broadcasts to threads that wait in the random pass. The
// published count for simlarge and 8 threads is 129600 arrivals, which are 16200 episodes.
//
// Differences: costs are integers, multiples of 2^-20, so sums do not depend on the number of
// threads. Classes small to large have the dimensions and points of simsmall to simlarge.
#include <pthread.h>

#include "team.h"

enum {
    MIN_MEDIANS = 10,
    MAX_MEDIANS = 20,
    MOST_KEPT = 2 * MAX_MEDIANS, // medians of a chunk
    PASS = 3,                    // tries per pass, in units of k log k
    PER_LINE = LINE / sizeof(int64_t)
};

struct problem {
    int dims;
    long points, chunk;
};

struct point {
    float *at;
    long weight;
    long median; // index of a point
    int64_t cost;
};

struct slot { // of one thread
    alignas(LINE) int64_t saved;
    long medians, closed;
};

struct search {
    struct barrier barrier;
    struct point *point;
    long count, threads; // count: points of this chunk
    int dims;
    uint64_t seed, drawn;
    struct slot *slot;
    uint8_t *open;     // whether a point is a median
    uint8_t *switched; // whether the try brings a point nearer to a median
    long *row_index;   // column of a median in `extra`
    // A row for each thread and one for all: cost of closing each median.
    int64_t *extra;
    long stride, capacity;
    long *feasible, feasible_count;
    long medians;
    int64_t saved; // by the last try
    int64_t cost;  // of the solution: of points, plus the price of each median
    int64_t price; // of a median
    // State of the random pass.
    pthread_mutex_t lock;
    pthread_cond_t opened;
    long opening, openings; // point opened, < 0: end of pass; number of changes
};

static double draw(struct search *s) { return uniform_at(s->seed, s->drawn++); }

static void wait_all(struct search *s) { barrier_wait(&s->barrier); }

static int64_t distance(const struct search *s, const struct point *p, const struct point *q) {
    float sum = 0;
    for (int i = 0; i < s->dims; i++) {
        float d = p->at[i] - q->at[i];
        sum += d * d;
    }
    return (int64_t)(sum * 0x1p20f) * p->weight;
}

static long block_start(const struct search *s, long id) {
    return share_start(s->count, s->threads, id);
}

// Return the sum of `mine` of all threads. Pre: all threads call it.
static int64_t sum_slots(struct search *s, long id, int64_t mine) {
    s->slot[id].saved = mine;
    wait_all(s);
    int64_t sum = 0;
    for (long i = 0; i < s->threads; i++)
        sum += s->slot[i].saved;
    wait_all(s);
    return sum;
}

static void swap_points(struct point *p, struct point *q) {
    struct point old = *p;
    *p = *q;
    *q = old;
}

static void shuffle_points(struct search *s) {
    for (long i = 0; i < s->count - 1; i++)
        swap_points(s->point + i, s->point + i + (long)(draw(s) * (double)(s->count - i)));
}

static void shuffle_feasible(struct search *s) {
    for (long i = 0; i < s->feasible_count - 1; i++) {
        long j = i + (long)(draw(s) * (double)(s->feasible_count - i));
        long old = s->feasible[i];
        s->feasible[i] = s->feasible[j];
        s->feasible[j] = old;
    }
}

static void move_to(struct search *s, long id, long median) {
    for (long i = block_start(s, id); i < block_start(s, id + 1); i++) {
        struct point *p = s->point + i;
        int64_t cost = distance(s, p, s->point + median);
        if (cost < p->cost) {
            p->cost = cost;
            p->median = median;
        }
    }
}

static void announce(struct search *s, long opening) {
    pthread_mutex_lock(&s->lock);
    s->opening = opening;
    s->openings++;
    pthread_cond_broadcast(&s->opened);
    pthread_mutex_unlock(&s->lock);
}

static void open_medians(struct search *s, int64_t price) {
    for (long i = 1; i < s->count; i++)
        if (draw(s) * (double)price < (double)s->point[i].cost) {
            s->open[i] = 1;
            s->medians++;
            announce(s, i);
            move_to(s, 0, i);
            wait_all(s);
        }
    announce(s, -1);
}

static void follow_medians(struct search *s, long id, long seen) {
    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (s->openings == seen)
            pthread_cond_wait(&s->opened, &s->lock);
        seen = s->openings;
        long opening = s->opening;
        pthread_mutex_unlock(&s->lock);
        if (opening < 0)
            return;
        move_to(s, id, opening);
        wait_all(s);
    }
}

// Open each point with probability cost / price: Meyerson, "Online Facility Location", FOCS 2001.
// Returns the cost.
static int64_t random_pass(struct search *s, long id, int64_t price) {
    if (id == 0) {
        shuffle_points(s);
        s->medians = 1;
    }
    long seen = s->openings; // thread 0 opens none between these barriers
    wait_all(s);
    long from = block_start(s, id), to = block_start(s, id + 1);
    for (long i = from; i < to; i++) {
        s->point[i].cost = INT64_MAX;
        s->open[i] = i == 0;
    }
    move_to(s, id, 0);
    wait_all(s);
    if (id == 0)
        open_medians(s, price);
    else
        follow_medians(s, id, seen);
    int64_t cost = 0;
    for (long i = from; i < to; i++)
        cost += s->point[i].cost;
    return sum_slots(s, id, cost) + price * s->medians;
}

static void clear_rows(struct search *s) {
    long total = 0;
    for (long i = 0; i < s->threads; i++) {
        long own = s->slot[i].medians;
        s->slot[i].medians = total;
        total += own;
    }
    s->stride = (total + PER_LINE - 1) / PER_LINE * PER_LINE + PER_LINE;
    if (s->stride > s->capacity) {
        s->capacity = 2 * s->stride;
        free(s->extra);
        s->extra = suite_memory(sizeof *s->extra * (size_t)(s->capacity * (s->threads + 1)));
    }
}

static void number_medians(struct search *s, long id, long from, long to) {
    long next = s->slot[id].medians;
    for (long i = from; i < to; i++)
        if (s->open[i])
            s->row_index[i] = next++;
    memset(s->extra + id * s->stride, 0, sizeof *s->extra * (size_t)s->stride);
    if (to > from)
        memset(s->switched + from, 0, (size_t)(to - from));
}

// Return the cost that the block's points save by a new median at x. Adds the cost of closing their
// medians to the thread's row of `extra`.
static int64_t compare_medians(struct search *s, long id, long from, long to, long x) {
    int64_t saved = 0, *extra = s->extra + id * s->stride;
    for (long i = from; i < to; i++) {
        const struct point *p = s->point + i;
        int64_t difference = p->cost - distance(s, p, s->point + x);
        if (difference > 0) {
            s->switched[i] = 1;
            saved += difference;
        } else {
            extra[s->row_index[p->median]] -= difference;
        }
    }
    return saved;
}

// Close medians of the block that a median at x replaces for less than their price. Returns the
// saved cost.
static int64_t close_medians(struct search *s, long id, long from, long to, int64_t price) {
    int64_t saved = 0, *all = s->extra + s->threads * s->stride;
    s->slot[id].closed = 0;
    for (long i = from; i < to; i++) {
        if (!s->open[i])
            continue;
        long row = s->row_index[i];
        int64_t benefit = price;
        for (long t = 0; t < s->threads; t++)
            benefit -= s->extra[t * s->stride + row];
        all[row] = benefit;
        if (benefit > 0) {
            saved += benefit;
            s->slot[id].closed++;
        }
    }
    return saved;
}

static void open_point(struct search *s, long from, long to, long x) {
    const int64_t *all = s->extra + s->threads * s->stride;
    for (long i = from; i < to; i++) {
        struct point *p = s->point + i;
        if (s->switched[i] || all[s->row_index[p->median]] > 0) {
            p->cost = distance(s, p, s->point + x);
            p->median = x;
        }
        if (s->open[i] && all[s->row_index[i]] > 0)
            s->open[i] = 0;
    }
    if (x >= from && x < to)
        s->open[x] = 1;
}

// Open a median at point x, if that saves cost. Returns the saved cost.
static int64_t try_point(struct search *s, long id, long x, int64_t price) {
    long from = block_start(s, id), to = block_start(s, id + 1);
    struct slot *mine = s->slot + id;
    wait_all(s);
    mine->medians = 0;
    for (long i = from; i < to; i++)
        mine->medians += s->open[i];
    wait_all(s);
    if (id == 0)
        clear_rows(s);
    wait_all(s);
    number_medians(s, id, from, to);
    wait_all(s);
    if (id == 0)
        memset(s->extra + s->threads * s->stride, 0, sizeof *s->extra * (size_t)s->stride);
    wait_all(s);
    mine->saved = compare_medians(s, id, from, to, x);
    wait_all(s);
    mine->saved += close_medians(s, id, from, to, price);
    wait_all(s);
    if (id == 0) {
        long closed = 0;
        s->saved = -price;
        for (long t = 0; t < s->threads; t++) {
            s->saved += s->slot[t].saved;
            closed += s->slot[t].closed;
        }
        if (s->saved > 0)
            s->medians += 1 - closed;
    }
    wait_all(s);
    int64_t saved = s->saved;
    if (saved > 0)
        open_point(s, from, to, x);
    wait_all(s);
    return saved > 0 ? saved : 0;
}

// Try feasible points until a pass of `tries` saves less than `least` of the cost.
static int64_t local_search(struct search *s, long id, int64_t price, int64_t cost, long tries,
                            double least) {
    int64_t saved = cost;
    while ((double)saved > least * (double)cost) {
        saved = 0;
        if (id == 0)
            shuffle_feasible(s);
        wait_all(s);
        for (long i = 0; i < tries; i++)
            saved += try_point(s, id, s->feasible[i % s->feasible_count], price);
        cost -= saved;
    }
    return cost;
}

// Choose points that may become medians: k log k, the heavy ones more often.
static void choose_feasible(struct search *s) {
    long total = 0;
    s->feasible_count = (long)(PASS * MIN_MEDIANS * log(MIN_MEDIANS));
    s->feasible_count = s->feasible_count < s->count ? s->feasible_count : s->count;
    for (long i = 0; i < s->count; i++)
        total += s->point[i].weight;
    for (long i = 0; i < s->feasible_count; i++) {
        long left = (long)(draw(s) * (double)total), chosen = 0;
        while (left >= s->point[chosen].weight)
            left -= s->point[chosen++].weight;
        s->feasible[i] = chosen;
    }
}

static int near_range(long medians) {
    return (medians <= 1.1 * MAX_MEDIANS && medians >= 0.9 * MIN_MEDIANS) ||
           (medians <= MAX_MEDIANS + 2 && medians >= MIN_MEDIANS - 2);
}

// Bisect the price until the local search ends with a number of medians in the range.
static void bisect_price(struct search *s, long id) {
    int64_t sum = 0, low = 0, high, price, cost;
    for (long i = block_start(s, id); i < block_start(s, id + 1); i++)
        sum += distance(s, s->point + i, s->point);
    high = sum_slots(s, id, sum);
    price = high / 2;
    cost = random_pass(s, id, price);
    for (int again = 1; s->medians < MIN_MEDIANS; again++) {
        if (again > 1) {
            high = price;
            price = (high + low) / 2;
        }
        wait_all(s);
        cost = random_pass(s, id, price);
    }
    wait_all(s);
    if (id == 0)
        choose_feasible(s);
    wait_all(s);
    long tries = (long)(PASS * MAX_MEDIANS * log(MAX_MEDIANS));
    for (;;) {
        cost = local_search(s, id, price, cost, tries, 0.1);
        if (near_range(s->medians))
            cost = local_search(s, id, price, cost, tries, 0.001);
        int fits = s->medians >= MIN_MEDIANS && s->medians <= MAX_MEDIANS;
        if (fits || (double)low >= 0.999 * (double)high)
            break;
        int64_t old = price;
        if (s->medians > MAX_MEDIANS)
            low = price;
        else
            high = price;
        price = (high + low) / 2;
        cost += (price - old) * s->medians;
    }
    if (id == 0) {
        s->cost = cost;
        s->price = price;
    }
}

static void cluster(long id, void *shared) {
    struct search *s = shared;
    if (s->count > MAX_MEDIANS) {
        bisect_price(s, id);
        return;
    }
    for (long i = block_start(s, id); i < block_start(s, id + 1); i++) {
        s->point[i].median = i;
        s->point[i].cost = 0;
        s->open[i] = 1;
    }
    if (id == 0) {
        s->medians = s->count;
        s->cost = s->price = 0;
    }
}

static void check(const struct search *s) {
    long medians = 0;
    int64_t cost = s->price * s->medians;
    for (long i = 0; i < s->count; i++) {
        const struct point *p = s->point + i;
        medians += s->open[i];
        cost += p->cost;
        if (!s->open[p->median] || p->cost != distance(s, p, s->point + p->median))
            fail("streamcluster: point %ld of %ld has a wrong median, %ld", i, s->count, p->median);
        if (s->open[i] && p->median != i && p->cost != 0)
            fail("streamcluster: median %ld is not a median of itself", i);
    }
    if (medians != s->medians || (s->count > MAX_MEDIANS && !near_range(medians)))
        fail("streamcluster: %ld medians are open, %ld counted", medians, s->medians);
    if (cost != s->cost)
        fail("streamcluster: the solution costs %lld, not %lld", (long long)cost,
             (long long)s->cost);
}

// Move medians to the means of their points, and append them to `to`. Returns their number.
static long keep_medians(struct search *s, struct point *to, long kept) {
    struct point *mean = to + kept;
    long *place = s->row_index, next = 0;
    for (long i = 0; i < s->count; i++)
        if (s->open[i]) {
            place[i] = next;
            mean[next].weight = 0;
            memset(mean[next++].at, 0, sizeof(float) * (size_t)s->dims);
        }
    for (long i = 0; i < s->count; i++) {
        const struct point *p = s->point + i;
        struct point *m = mean + place[p->median];
        m->weight += p->weight;
        float part = (float)p->weight / (float)m->weight;
        for (int d = 0; d < s->dims; d++)
            m->at[d] += (p->at[d] - m->at[d]) * part;
    }
    return next;
}

// Place `count` points of weight 1 over coordinates.
static void lay_points(struct point *point, float *at, long count, int dims) {
    for (long i = 0; i < count; i++)
        point[i] = (struct point){.at = at + i * dims, .weight = 1};
}

static void search_points(struct search *s, struct suite *suite, struct point *point, long count,
                          long spins) {
    barrier_init(&s->barrier, s->threads, spins);
    s->point = point;
    s->count = count;
    memset(s->open, 0, (size_t)count);
    team_run(s->threads, cluster, s);
    suite_count(suite, "barriers", atomic_load(&s->barrier.episodes));
    suite_stop(suite);
    check(s);
    suite_start(suite);
}

static struct search make_search(const struct suite *suite, long most) {
    struct search s = {.threads = suite->threads,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .opened = PTHREAD_COND_INITIALIZER};
    s.slot = suite_memory(sizeof *s.slot * (size_t)s.threads);
    s.open = suite_memory((size_t)most);
    s.switched = suite_memory((size_t)most);
    s.row_index = suite_memory(sizeof *s.row_index * (size_t)most);
    s.feasible = suite_memory(sizeof *s.feasible * PASS * MIN_MEDIANS * MIN_MEDIANS);
    return s;
}

static void free_search(struct search *s) {
    free(s->slot);
    free(s->open);
    free(s->switched);
    free(s->row_index);
    free(s->feasible);
    free(s->extra);
}

static uint64_t solve(struct suite *suite, const struct problem *problem, long spins) {
    int dims = problem->dims;
    long most_kept = (problem->points / problem->chunk + 1) * MOST_KEPT;
    long most = problem->chunk > most_kept ? problem->chunk : most_kept;
    struct search s = make_search(suite, most);
    struct point *chunk = suite_memory(sizeof *chunk * (size_t)problem->chunk);
    struct point *kept = suite_memory(sizeof *kept * (size_t)(most_kept + MOST_KEPT));
    float *at = suite_memory(sizeof *at * (size_t)(problem->chunk * dims));
    float *kept_at = suite_memory(sizeof *at * (size_t)((most_kept + MOST_KEPT) * dims));
    s.dims = dims;
    lay_points(kept, kept_at, most_kept + MOST_KEPT, dims);
    long count = 0;
    uint64_t hash = 0;
    suite_start(suite);
    for (long from = 0; from < problem->points; from += problem->chunk) {
        for (long i = 0; i < problem->chunk * dims; i++)
            at[i] = (float)uniform_at(1, (uint64_t)(from * dims + i));
        lay_points(chunk, at, problem->chunk, dims);
        search_points(&s, suite, chunk, problem->chunk, spins);
        hash = suite_hash(hash, &s.cost, sizeof s.cost);
        count += keep_medians(&s, kept, count);
    }
    search_points(&s, suite, kept, count, spins);
    long last = keep_medians(&s, kept, count);
    suite_stop(suite);
    long weight = 0;
    for (long i = count; i < count + last; i++) {
        weight += kept[i].weight;
        hash = suite_hash(hash, kept[i].at, sizeof *at * (size_t)dims);
    }
    suite_verify(suite, "weight of all medians", (double)weight, (double)problem->points, 0);
    suite_count(suite, "openings", s.openings);
    free_search(&s);
    free(chunk);
    free(kept);
    free(at);
    free(kept_at);
    return hash;
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct problem problems[] = {
        {2, 600, 300}, {32, 4096, 4096}, {64, 8192, 8192}, {128, 16384, 16384}};
    long spins = take_spins(&argc, argv);
    struct suite s = suite_parse("parsec/streamcluster", classes, argc, argv);
    do
        suite_checksum(&s, solve(&s, &problems[s.class_index], spins));
    while (suite_next(&s));
    return suite_report(&s);
}
