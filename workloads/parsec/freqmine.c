/* SPDX-License-Identifier: MIT */
// Counts the frequent itemsets of transactions by FP-growth, as freqmine of PARSEC. Specification:
// C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC Benchmark Suite: Characterization and
// Architectural Implications", PACT 2008, and C. Bienia, "Benchmarking Modern Multiprocessors",
// dissertation, Princeton 2011. Algorithm: J. Han, J. Pei, Y. Yin, "Mining Frequent Patterns
// without Candidate Generation", SIGMOD 2000.
//
// An FP-tree is a prefix tree of transactions whose items are sorted by frequency. To mine it, the
// program takes each item, builds the tree of the paths above that item, and mines this tree.
//
// Synchronization: six parallel loops, with a barrier after each. They count items, filter and sort
// transactions, group them by their combination of the most frequent items, build a tree for each
// group, join the trees, and mine the joined tree. The first and the last have a critical section
// per thread, which adds its counts up. Loops over blocks of transactions, groups and items to mine
// are schedule(dynamic,1); the others are static. Groups and items differ much in work, so threads
// are idle at the end of these loops. Mining takes most of the time.
//
// Differences: the program generates its transactions. Classes medium and large have as many as
// simmedium and simlarge, small has half of simsmall's. Class large has a lower support: 400, not
// 790. Trees are arrays of nodes with an index by item; the original has three formats of arrays.
#define _GNU_SOURCE // qsort_r
#include <omp.h>

#include "../suite.h"
#include "draw.h"

enum {
    BLOCK = 4096, // transactions per block
    HOT = 6,      // the most frequent items; their combinations are the groups
    GROUPS = 1 << HOT,
    LONGEST = 64,    // maximum number of items of a transaction
    ITEMS = 1 << 15, // number of different items
    PATTERNS = 300,  // number of sets of items that occur together
    PATTERN = 16     // maximum number of items of a pattern
};

struct data {
    long transactions, support; // a frequent itemset is in `support` transactions
    long *first;                // first item of each transaction
    uint16_t *item;
};

struct node {
    int item, parent, child, sibling; // -1: none
    int count;
};

// Items are numbers from 0, the most frequent. A parent's is smaller than its child's.
struct tree {
    int items, nodes;
    int base;      // -1 or a node; its children are in `top` by item, not in its `child`
    int *top;      // -1: none
    long *support; // of each item
    int *first;    // of each item, and the end: place of its nodes in `order`
    int *order;    // nodes by item
    struct node *node;
    int item_room, node_room, order_room;
};

struct found {
    long of_length[LONGEST + 1]; // number of itemsets by length
    uint64_t support;            // sum over all itemsets
};

// A thread's memory for mining: a tree for each length of an itemset, and data by item.
struct miner {
    struct tree level[LONGEST + 1];
    long *count;
    int *number, *by_count;
    struct found found;
};

// Transactions with items numbered by frequency, without infrequent items.
struct tiles {
    const struct data *data;
    int items;
    int *number;    // of each item of the data; -1: not frequent
    uint16_t *item; // transaction t's begin at data->first[t]
    uint8_t *length, *group;
    long blocks;
    int (*in_block)[GROUPS]; // numbers of transactions; later: their place in `member`
    long begin[GROUPS + 1];  // place of each group in `member`
    int *member;             // transactions by group
};

struct tally {
    long barriers, criticals;
    long iterations; // of loops with schedule(dynamic,1)
};

static void *grown(void *old, size_t bytes) {
    void *p = realloc(old, bytes);
    if (!p)
        fail("parsec/freqmine: no memory for %zu bytes", bytes);
    return p;
}

// Count a barrier for each thread of the team.
static void end_loop(struct tally *tally) {
#pragma omp atomic
    tally->barriers++;
}

// --- trees ---------------------------------------------------------------------------------------

// Make an empty tree. Reuses the memory of the old one.
static void clear_tree(struct tree *t, int items) {
    if (items > t->item_room || !t->first) {
        t->item_room = 2 * items + 16;
        t->top = grown(t->top, (size_t)t->item_room * sizeof *t->top);
        t->support = grown(t->support, (size_t)t->item_room * sizeof *t->support);
        t->first = grown(t->first, ((size_t)t->item_room + 1) * sizeof *t->first);
    }
    t->items = items;
    t->nodes = 0;
    t->base = -1;
    for (int i = 0; i < items; i++) {
        t->top[i] = -1;
        t->support[i] = 0;
    }
}

static void free_tree(struct tree *t) {
    free(t->top);
    free(t->support);
    free(t->first);
    free(t->order);
    free(t->node);
}

static int new_node(struct tree *t, int item, int parent, int sibling) {
    if (t->nodes == t->node_room) {
        t->node_room = 2 * t->node_room + 64;
        t->node = grown(t->node, (size_t)t->node_room * sizeof *t->node);
    }
    t->node[t->nodes] = (struct node){item, parent, -1, sibling, 0};
    return t->nodes++;
}

// Add a path below the base. Items ascend; those of siblings descend, so a sorted sequence of paths
// finds each place at once.
static void insert(struct tree *t, const uint16_t *path, int length, int count) {
    int at = t->base;
    for (int i = 0; i < length; i++) {
        int before = -1, child = at == t->base ? t->top[path[i]] : t->node[at].child;
        while (child >= 0 && t->node[child].item > path[i]) {
            before = child;
            child = t->node[child].sibling;
        }
        if (child < 0 || t->node[child].item != path[i]) {
            child = new_node(t, path[i], at, child);
            if (before >= 0)
                t->node[before].sibling = child;
            else if (at == t->base)
                t->top[path[i]] = child;
            else
                t->node[at].child = child;
        }
        t->node[child].count += count;
        at = child;
    }
}

// Turn the counts in `first` into places. Pre: first[i + 1] is the number of nodes of item i.
static void counts_to_places(struct tree *t) {
    t->first[0] = 0;
    for (int i = 0; i < t->items; i++)
        t->first[i + 1] += t->first[i];
    if (t->nodes > t->order_room) {
        t->order_room = 2 * t->nodes;
        t->order = grown(t->order, (size_t)t->order_room * sizeof *t->order);
    }
}

// Fill in `first`, `order` and `support`.
static void index_nodes(struct tree *t) {
    for (int i = 0; i <= t->items; i++)
        t->first[i] = 0;
    for (int n = 0; n < t->nodes; n++) {
        t->first[t->node[n].item + 1]++;
        t->support[t->node[n].item] += t->node[n].count;
    }
    counts_to_places(t);
    for (int n = 0; n < t->nodes; n++)
        t->order[t->first[t->node[n].item]++] = n;
    for (int i = t->items; i > 0; i--)
        t->first[i] = t->first[i - 1];
    t->first[0] = 0;
}

// --- mining --------------------------------------------------------------------------------------

static void sort_items(uint16_t *item, int length) {
    for (int i = 1; i < length; i++) {
        uint16_t x = item[i];
        int k = i;
        for (; k > 0 && item[k - 1] > x; k--)
            item[k] = item[k - 1];
        item[k] = x;
    }
}

// Renumber the items above `item` by counts on paths to its nodes. Returns how many are frequent.
static int number_items(struct miner *m, const struct tree *t, int item, long support) {
    int frequent = 0;
    for (int i = 0; i < item; i++)
        m->count[i] = 0;
    for (int k = t->first[item]; k < t->first[item + 1]; k++) {
        const struct node *node = &t->node[t->order[k]];
        for (int p = node->parent; p >= 0; p = t->node[p].parent)
            m->count[t->node[p].item] += node->count;
    }
    for (int i = 0; i < item; i++) {
        m->number[i] = -1;
        if (m->count[i] < support)
            continue;
        int k = frequent++;
        for (; k > 0 && m->count[m->by_count[k - 1]] < m->count[i]; k--)
            m->by_count[k] = m->by_count[k - 1];
        m->by_count[k] = i;
    }
    for (int k = 0; k < frequent; k++)
        m->number[m->by_count[k]] = k;
    return frequent;
}

// Make the tree of the paths above `item`.
static void make_conditional(struct miner *m, const struct tree *t, int item, long support,
                             struct tree *out) {
    clear_tree(out, number_items(m, t, item, support));
    for (int k = t->first[item]; out->items && k < t->first[item + 1]; k++) {
        const struct node *node = &t->node[t->order[k]];
        uint16_t path[LONGEST];
        int length = 0;
        for (int p = node->parent; p >= 0; p = t->node[p].parent)
            if (m->number[t->node[p].item] >= 0)
                path[length++] = (uint16_t)m->number[t->node[p].item];
        sort_items(path, length);
        insert(out, path, length, node->count);
    }
    index_nodes(out);
}

static int is_one_path(const struct tree *t) {
    int n = 0;
    while (n < t->nodes && t->node[n].parent == n - 1)
        n++;
    return n == t->nodes;
}

// Count all subsets of a single path, each as frequent as its last node. length: of their prefix.
static void add_path(struct found *found, const struct tree *t, int length) {
    long subsets[LONGEST + 1] = {1}; // numbers of subsets of the nodes before, by size
    for (int n = 0; n < t->nodes; n++) {
        found->support += (uint64_t)t->node[n].count << n;
        for (int k = n; k >= 0; k--) {
            found->of_length[length + k + 1] += subsets[k];
            subsets[k + 1] += subsets[k];
        }
    }
}

// Count the itemsets whose least frequent item is `item`, extending `length` - 1 items.
static void mine(struct miner *m, const struct tree *t, int item, int length, long support) {
    struct tree *next = &m->level[length];
    m->found.of_length[length]++;
    m->found.support += (uint64_t)t->support[item];
    make_conditional(m, t, item, support, next);
    if (is_one_path(next)) {
        add_path(&m->found, next, length);
        return;
    }
    for (int i = next->items - 1; i >= 0; i--)
        mine(m, next, i, length + 1, support);
}

static struct miner *make_miner(int items) {
    struct miner *m = suite_memory(sizeof *m);
    m->count = suite_memory(((size_t)items + 1) * sizeof *m->count);
    m->number = suite_memory(((size_t)items + 1) * sizeof *m->number);
    m->by_count = suite_memory(((size_t)items + 1) * sizeof *m->by_count);
    return m;
}

static void free_miner(struct miner *m) {
    for (int i = 0; i <= LONGEST; i++)
        free_tree(&m->level[i]);
    free(m->count);
    free(m->number);
    free(m->by_count);
    free(m);
}

static void add_found(struct found *sum, const struct found *found) {
    for (int i = 0; i <= LONGEST; i++)
        sum->of_length[i] += found->of_length[i];
    sum->support += found->support;
}

static void mine_all(const struct tree *t, long support, struct found *found, struct tally *tally) {
#pragma omp parallel
    {
        struct miner *m = make_miner(t->items);
#pragma omp for schedule(dynamic, 1) nowait
        for (int item = t->items - 1; item >= 0; item--)
            mine(m, t, item, 1, support);
#pragma omp critical
        {
            add_found(found, &m->found);
            tally->criticals++;
        }
        free_miner(m);
        end_loop(tally);
    }
}

// --- from transactions to the tree ---------------------------------------------------------------

static long block_end(const struct data *data, long block) {
    long end = (block + 1) * BLOCK;
    return end < data->transactions ? end : data->transactions;
}

static void count_items(struct tiles *tiles, long *count, struct tally *tally) {
    const struct data *data = tiles->data;
#pragma omp parallel
    {
        long *own = suite_memory(ITEMS * sizeof *own);
#pragma omp for schedule(dynamic, 1) nowait
        for (long block = 0; block < tiles->blocks; block++) {
            long end = data->first[block_end(data, block)];
            for (long i = data->first[block * BLOCK]; i < end; i++)
                own[data->item[i]]++;
        }
#pragma omp critical
        {
            for (int i = 0; i < ITEMS; i++)
                count[i] += own[i];
            tally->criticals++;
        }
        free(own);
        end_loop(tally);
    }
}

struct counted {
    long count;
    int item;
};

static int by_count_then_item(const void *a, const void *b) {
    const struct counted *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : x->item - y->item;
}

static void number_frequent(struct tiles *tiles, const long *count) {
    struct counted *frequent = suite_memory(ITEMS * sizeof *frequent);
    for (int i = 0; i < ITEMS; i++) {
        tiles->number[i] = -1;
        if (count[i] >= tiles->data->support)
            frequent[tiles->items++] = (struct counted){count[i], i};
    }
    qsort(frequent, (size_t)tiles->items, sizeof *frequent, by_count_then_item);
    for (int k = 0; k < tiles->items; k++)
        tiles->number[frequent[k].item] = k;
    free(frequent);
}

static void filter(struct tiles *tiles, struct tally *tally) {
    const struct data *data = tiles->data;
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (long block = 0; block < tiles->blocks; block++) {
            for (long t = block * BLOCK; t < block_end(data, block); t++) {
                uint16_t *kept = tiles->item + data->first[t];
                int length = 0, group = 0;
                for (long i = data->first[t]; i < data->first[t + 1]; i++)
                    if (tiles->number[data->item[i]] >= 0)
                        kept[length++] = (uint16_t)tiles->number[data->item[i]];
                sort_items(kept, length);
                for (int i = 0; i < length && kept[i] < HOT; i++)
                    group |= 1 << kept[i];
                tiles->length[t] = (uint8_t)length;
                tiles->group[t] = (uint8_t)group;
                tiles->in_block[block][group]++;
            }
        }
        end_loop(tally);
    }
}

static void group_transactions(struct tiles *tiles, struct tally *tally) {
    const struct data *data = tiles->data;
    int at = 0;
    for (int group = 0; group < GROUPS; group++) {
        tiles->begin[group] = at;
        for (long block = 0; block < tiles->blocks; block++) {
            int count = tiles->in_block[block][group];
            tiles->in_block[block][group] = at;
            at += count;
        }
    }
    tiles->begin[GROUPS] = at;
#pragma omp parallel
    {
#pragma omp for nowait
        for (long block = 0; block < tiles->blocks; block++)
            for (long t = block * BLOCK; t < block_end(data, block); t++)
                tiles->member[tiles->in_block[block][tiles->group[t]]++] = (int)t;
        end_loop(tally);
    }
}

static int by_items(const void *a, const void *b, void *context) {
    const struct tiles *tiles = context;
    int x = *(const int *)a, y = *(const int *)b, i = 0;
    int x_length = tiles->length[x], y_length = tiles->length[y];
    const uint16_t *p = tiles->item + tiles->data->first[x];
    const uint16_t *q = tiles->item + tiles->data->first[y];
    while (i < x_length && i < y_length && p[i] == q[i])
        i++;
    return i < x_length && i < y_length ? p[i] - q[i] : x_length - y_length;
}

// Build the tree of a group: one path of the hot items that all have, and the rest below it.
static void build_group(struct tiles *tiles, int group, struct tree *t) {
    const struct data *data = tiles->data;
    int hot = __builtin_popcount((unsigned)group);
    clear_tree(t, tiles->items);
    qsort_r(tiles->member + tiles->begin[group],
            (size_t)(tiles->begin[group + 1] - tiles->begin[group]), sizeof *tiles->member,
            by_items, tiles);
    for (long k = tiles->begin[group]; k < tiles->begin[group + 1]; k++) {
        long number = tiles->member[k];
        const uint16_t *item = tiles->item + data->first[number];
        if (!t->nodes)
            for (int i = 0; i < hot; i++)
                t->base = new_node(t, item[i], i - 1, -1);
        for (int i = 0; i < hot; i++)
            t->node[i].count++;
        insert(t, item + hot, tiles->length[number] - hot, 1);
    }
    index_nodes(t);
}

static void build_groups(struct tiles *tiles, struct tree *part, struct tally *tally) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int group = 0; group < GROUPS; group++)
            build_group(tiles, group, &part[group]);
        end_loop(tally);
    }
}

// Copy the trees of the groups into one. Changes their `first` to places in it.
static void join_groups(struct tree *part, struct tree *whole, int items, struct tally *tally) {
    int begin[GROUPS];
    clear_tree(whole, items);
    for (int group = 0; group < GROUPS; group++) {
        begin[group] = whole->nodes;
        whole->nodes += part[group].nodes;
    }
    whole->node = suite_memory(((size_t)whole->nodes + 1) * sizeof *whole->node);
    for (int i = 0, at = 0; i < items; i++) {
        whole->first[i + 1] = 0;
        for (int group = 0; group < GROUPS; group++) {
            int count = part[group].first[i + 1] - part[group].first[i];
            whole->first[i + 1] += count;
            whole->support[i] += part[group].support[i];
            part[group].first[i] = at;
            at += count;
        }
    }
    counts_to_places(whole);
#pragma omp parallel
    {
#pragma omp for nowait
        for (int group = 0; group < GROUPS; group++)
            for (int n = 0; n < part[group].nodes; n++) {
                struct node *node = &whole->node[begin[group] + n];
                *node = part[group].node[n];
                node->parent += node->parent < 0 ? 0 : begin[group];
                whole->order[part[group].first[node->item]++] = begin[group] + n;
            }
        end_loop(tally);
    }
}

static void solve(const struct data *data, struct found *found, struct tally *tally) {
    long *count = suite_memory(ITEMS * sizeof *count);
    size_t transactions = (size_t)data->transactions;
    struct tiles tiles = {.data = data, .blocks = (data->transactions + BLOCK - 1) / BLOCK};
    tiles.number = suite_memory(ITEMS * sizeof *tiles.number);
    tiles.item = suite_memory((size_t)data->first[transactions] * sizeof *tiles.item);
    tiles.length = suite_memory(transactions);
    tiles.group = suite_memory(transactions);
    tiles.in_block = suite_memory((size_t)tiles.blocks * sizeof *tiles.in_block);
    tiles.member = suite_memory(transactions * sizeof *tiles.member);
    struct tree *part = suite_memory((GROUPS + 1) * sizeof *part), *whole = part + GROUPS;
    count_items(&tiles, count, tally);
    number_frequent(&tiles, count);
    filter(&tiles, tally);
    group_transactions(&tiles, tally);
    build_groups(&tiles, part, tally);
    join_groups(part, whole, tiles.items, tally);
    mine_all(whole, data->support, found, tally);
    tally->iterations = 2 * tiles.blocks + GROUPS + tiles.items;
    for (int group = 0; group <= GROUPS; group++)
        free_tree(&part[group]);
    free(part);
    free(tiles.number);
    free(tiles.item);
    free(tiles.length);
    free(tiles.group);
    free(tiles.in_block);
    free(tiles.member);
    free(count);
}

// --- transactions --------------------------------------------------------------------------------

// Return a random number below `limit`, skewed to small ones: power 2 or 4 of a uniform number.
static int draw_skewed(uint64_t *state, int limit, int power) {
    double x = draw_uniform(state);
    return (int)((power == 4 ? x * x * x * x : x * x) * limit);
}

static int add_item(uint16_t *item, int length, int added) {
    for (int i = 0; i < length; i++)
        if (item[i] == added)
            return length;
    if (length < LONGEST)
        item[length++] = (uint16_t)added;
    return length;
}

// Generate transactions: items of one or more patterns, some left out, and other items.
static struct data make_data(long transactions, long support) {
    struct data data = {.transactions = transactions, .support = support};
    uint16_t(*pattern)[PATTERN] = suite_memory(PATTERNS * sizeof *pattern);
    uint64_t state = 1;
    data.first = suite_memory(((size_t)transactions + 1) * sizeof *data.first);
    data.item = grown(NULL, (size_t)transactions * LONGEST * sizeof *data.item);
    for (int i = 0; i < PATTERNS; i++)
        for (int k = 0; k < PATTERN; k++)
            pattern[i][k] = (uint16_t)draw_skewed(&state, ITEMS, 4);
    for (long t = 0; t < transactions; t++) {
        uint16_t *item = data.item + data.first[t];
        int length = 0;
        do {
            const uint16_t *p = pattern[draw_skewed(&state, PATTERNS, 2)];
            int size = 2 + (int)(draw(&state) % (PATTERN - 1));
            for (int k = 0; k < size; k++)
                if (draw(&state) % 8)
                    length = add_item(item, length, p[k]);
            for (int others = (int)(draw(&state) % 4); others > 0; others--)
                length = add_item(item, length, draw_skewed(&state, ITEMS, 4));
        } while (draw(&state) % 4 == 0);
        data.first[t + 1] = data.first[t] + length;
    }
    free(pattern);
    return data;
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct {
        long transactions, support;
        double itemsets, supports; // computed by intersecting lists of transactions (Eclat)
    } known[] = {{20000, 40, 133513, 9960509},
                 {125000, 110, 616365, 140562890},
                 {500000, 410, 688494, 585019469},
                 {990000, 400, 2291169, 2034835663}};
    struct suite s = suite_parse("parsec/freqmine", classes, argc, argv);
    struct data data = make_data(known[s.class_index].transactions, known[s.class_index].support);
    do {
        struct found found = {0};
        struct tally tally = {0};
        long itemsets = 0;
        suite_start(&s);
        solve(&data, &found, &tally);
        suite_stop(&s);
        for (int i = 0; i <= LONGEST; i++)
            itemsets += found.of_length[i];
        suite_verify(&s, "itemsets", (double)itemsets, known[s.class_index].itemsets, 0);
        suite_verify(&s, "supports", (double)found.support, known[s.class_index].supports, 0);
        suite_checksum(&s, suite_hash(0, &found, sizeof found));
        suite_count(&s, "barriers", tally.barriers);
        suite_count(&s, "criticals", tally.criticals);
        suite_count(&s, "iterations", tally.iterations);
    } while (suite_next(&s));
    free(data.first);
    free(data.item);
    return suite_report(&s);
}
