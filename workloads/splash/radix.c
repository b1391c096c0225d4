/* SPDX-License-Identifier: MIT */
// Integer radix sort, as Radix of SPLASH-2: Woo, Ohara, Torrie, Singh, Gupta, "The SPLASH-2
// Programs: Characterization and Methodological Considerations", ISCA 1995. The algorithm is that
// of Blelloch et al., "A Comparison of Sorting Algorithms for the Connection Machine CM-2", 1991.
// Keys have 30 bits, digits 10, and each key is the mean of four random numbers.
//
// Synchronization: in each of the 3 passes, each thread counts the digits of its keys. A binary
// tree over threads adds the counts up to its root, and passes the sums of lower threads down to
// its leaves. Then each thread moves its keys. Parents and children wait for each other by pause
// flags, 2 * (threads - 1) per pass. Half of the threads idle at each level of the tree. A pass has
// 4 barriers, a sort 2 more. A class is a number of sorts, one after another.
//
// Differences: the number of threads need not be a power of two; nodes of the tree without a right
// child copy the counts of the left one.
#include "parmacs.h"

enum { DIGIT_BITS = 10, DIGITS = 1 << DIGIT_BITS, PASSES = 3, MAX_LEVELS = 16 };

static const char *const classes[] = {"small", "test", "medium", "large", NULL};
static const struct {
    long keys, sorts;
} sizes[] = {{1L << 20, 20}, {1L << 14, 2}, {1L << 22, 26}, {1L << 24, 26}};

// A node covers 2^level threads.
struct node {
    _Alignas(LINE) struct flag done;
    long count[DIGITS]; // numbers of all keys of these threads
    long start[DIGITS]; // place of their first key of each digit
};

struct radix {
    long count, sorts;
    uint32_t *keys[2];
    struct node *tree[MAX_LEVELS]; // from the leaves to the root
    int levels;
    pthread_mutex_t sum_lock;
    // Sums of all threads, protected by sum_lock.
    uint64_t made, made_squares, found, found_squares, checksum;
    long disorders;
};

static void make_keys(struct radix *r, long sort, long first, long end) {
    uint64_t sum = 0, squares = 0, seed = 100 + (uint64_t)sort;
    for (long i = first; i < end; i++) {
        uint64_t a = random_at(seed, 2 * (uint64_t)i), b = random_at(seed, 2 * (uint64_t)i + 1);
        uint64_t key = ((uint32_t)a + (a >> 32) + (uint32_t)b + (b >> 32)) >> 4;
        r->keys[0][i] = (uint32_t)key;
        sum += key;
        squares += key * key;
    }
    lock(&r->sum_lock);
    r->made += sum;
    r->made_squares += squares;
    unlock(&r->sum_lock);
}

static void count_digits(const uint32_t *keys, long first, long end, int shift, long *count) {
    memset(count, 0, sizeof *count * DIGITS);
    for (long i = first; i < end; i++)
        count[keys[i] >> shift & (DIGITS - 1)]++;
}

// Return the level of the highest node of thread `id`: no right child, or the root.
static int top_level(const struct radix *r, long id) {
    return id ? __builtin_ctzl((unsigned long)id) : r->levels - 1;
}

// Return the right child of the node at `level` + 1 that thread `id` computes, or NULL.
static struct node *right_child(const struct radix *r, long threads, long id, int level) {
    return id + (1L << level) < threads ? r->tree[level] + (id >> level) + 1 : NULL;
}

static void add_up(struct radix *r, long threads, long id) {
    int top = top_level(r, id);
    for (int level = 0; level < top; level++) {
        const struct node *left = r->tree[level] + (id >> level);
        struct node *parent = r->tree[level + 1] + (id >> (level + 1));
        struct node *right = right_child(r, threads, id, level);
        if (!right) {
            memcpy(parent->count, left->count, sizeof left->count);
            continue;
        }
        flag_wait(&right->done);
        flag_clear(&right->done);
        for (int digit = 0; digit < DIGITS; digit++)
            parent->count[digit] = left->count[digit] + right->count[digit];
    }
    if (id)
        flag_set(&r->tree[top][id >> top].done);
}

static void hand_down(struct radix *r, long threads, long id) {
    int top = top_level(r, id);
    struct node *node = r->tree[top] + (id >> top);
    if (id) {
        flag_wait(&node->done);
        flag_clear(&node->done);
    } else {
        long start = 0;
        for (int digit = 0; digit < DIGITS; digit++) {
            node->start[digit] = start;
            start += node->count[digit];
        }
    }
    for (int level = top - 1; level >= 0; level--) {
        struct node *left = r->tree[level] + (id >> level);
        struct node *right = right_child(r, threads, id, level);
        memcpy(left->start, node->start, sizeof left->start);
        if (right) {
            for (int digit = 0; digit < DIGITS; digit++)
                right->start[digit] = node->start[digit] + left->count[digit];
            flag_set(&right->done);
        }
        node = left;
    }
}

static void move_keys(const uint32_t *from, uint32_t *to, long first, long end, int shift,
                      long *start) {
    for (long i = first; i < end; i++)
        to[start[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

static void check_keys(struct radix *r, const uint32_t *keys, long first, long end) {
    uint64_t sum = 0, squares = 0, checksum = 0;
    long disorders = 0;
    for (long i = first; i < end; i++) {
        uint64_t key = keys[i];
        disorders += i > 0 && keys[i - 1] > key;
        sum += key;
        squares += key * key;
        checksum += key * (uint64_t)(2 * i + 1);
    }
    lock(&r->sum_lock);
    r->found += sum;
    r->found_squares += squares;
    r->checksum += checksum;
    r->disorders += disorders;
    unlock(&r->sum_lock);
}

static void sort_keys(struct radix *r, struct team *team, long id, long sort) {
    long first = share_start(r->count, team->threads, id);
    long end = first + share(r->count, team->threads, id);
    struct node *leaf = r->tree[0] + id;
    make_keys(r, sort, first, end);
    barrier_wait(&team->barrier);
    for (int pass = 0; pass < PASSES; pass++) {
        const uint32_t *from = r->keys[pass % 2];
        uint32_t *to = r->keys[1 - pass % 2];
        count_digits(from, first, end, pass * DIGIT_BITS, leaf->count);
        barrier_wait(&team->barrier);
        add_up(r, team->threads, id);
        barrier_wait(&team->barrier);
        hand_down(r, team->threads, id);
        barrier_wait(&team->barrier);
        move_keys(from, to, first, end, pass * DIGIT_BITS, leaf->start);
        barrier_wait(&team->barrier);
    }
    check_keys(r, r->keys[PASSES % 2], first, end);
    barrier_wait(&team->barrier);
}

static void work(struct team *team, long id, void *shared) {
    struct radix *r = shared;
    for (long sort = 0; sort < r->sorts; sort++)
        sort_keys(r, team, id, sort);
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("splash/radix", classes, argc, argv);
    struct radix r = {.count = sizes[s.class_index].keys,
                      .sorts = sizes[s.class_index].sorts,
                      .sum_lock = PTHREAD_MUTEX_INITIALIZER};
    for (int i = 0; i < 2; i++)
        r.keys[i] = suite_memory(sizeof *r.keys[i] * (size_t)r.count);
    for (long width = s.threads;; width = (width + 1) / 2) {
        r.tree[r.levels] = suite_memory(sizeof *r.tree[0] * (size_t)width);
        for (long i = 0; i < width; i++)
            flag_init(&r.tree[r.levels][i].done);
        r.levels++;
        if (width == 1)
            break;
    }
    do {
        r.made = r.made_squares = r.found = r.found_squares = r.checksum = 0;
        team_run(&s, work, &r);
        suite_verify(&s, "the number of keys that are out of order", (double)r.disorders, 0, 0);
        if (r.found != r.made || r.found_squares != r.made_squares)
            fail("%s: the sorted keys are not those that were made", s.program);
        suite_checksum(&s, r.checksum);
    } while (suite_next(&s));
    for (int i = 0; i < 2; i++)
        free(r.keys[i]);
    while (r.levels)
        free(r.tree[--r.levels]);
    return suite_report(&s);
}
