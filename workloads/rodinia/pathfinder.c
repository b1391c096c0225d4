/* SPDX-License-Identifier: MIT */
// The cheapest path through a grid from its first row to its last. A step leads to the next row, to
// the same column or a neighboring one.
//
// Specification: PathFinder of Che et al., "Rodinia: A Benchmark Suite for Heterogeneous
// Computing", IISWC 2009, and of its release notes: dynamic programming, row by row.
//
// Threads: one parallel loop for each row after the first, so one barrier per row. A loop takes
// some ten microseconds of one CPU. Before, one thread fills the grid from rand(), which takes most
// of the time, while the others are idle. Both are part of the timed section.
//
// Differences: all classes solve grids one after another, which bounds the memory. The original
// prints the grid before it solves it, unless built otherwise. This program does not, so its serial
// share is smaller.
#include <omp.h>

#include "../suite.h"

enum { COST_LIMIT = 10 }; // costs of cells are below

struct grid {
    long rows, columns;
    int *cost;
};

static int least(int a, int b) { return a < b ? a : b; }

static struct grid make_grid(long rows, long columns) {
    struct grid g = {rows, columns, suite_memory(sizeof(int) * (size_t)(rows * columns))};
    for (long i = 0; i < rows * columns; i++)
        g.cost[i] = rand() % COST_LIMIT;
    return g;
}

// Return the cheapest of the cells from which, or to which, a step from `column` leads.
static int cheapest(const int *row, long columns, long column) {
    int best = row[column];
    if (column > 0)
        best = least(best, row[column - 1]);
    if (column < columns - 1)
        best = least(best, row[column + 1]);
    return best;
}

// Set best[i] to the cost of the best path that ends in column i of the last row.
static void solve(const struct grid *g, int *best) {
    int *to = suite_memory(sizeof(int) * (size_t)g->columns), *from = best;
    memcpy(from, g->cost, sizeof(int) * (size_t)g->columns);
    for (long row = 1; row < g->rows; row++) {
        const int *cost = g->cost + row * g->columns;
#pragma omp parallel for
        for (long i = 0; i < g->columns; i++)
            to[i] = cost[i] + cheapest(from, g->columns, i);
        int *swap = from;
        from = to;
        to = swap;
    }
    if (from != best)
        memcpy(best, from, sizeof(int) * (size_t)g->columns);
    free(from == best ? to : from);
}

// Walk the grid from its end, serially. The best path's cost, and the sum of its cells, must be
// those of solve().
static void check(const struct grid *g, const int *best) {
    int *left = suite_memory(sizeof(int) * (size_t)(g->rows * g->columns)), found = best[0];
    long last = g->rows - 1, columns = g->columns, column = 0;
    memcpy(left + last * columns, g->cost + last * columns, sizeof(int) * (size_t)columns);
    for (long row = last - 1; row >= 0; row--)
        for (long i = 0; i < columns; i++)
            left[row * columns + i] =
                g->cost[row * columns + i] + cheapest(left + (row + 1) * columns, columns, i);
    for (long i = 1; i < columns; i++) {
        found = least(found, best[i]);
        column = left[i] < left[column] ? i : column;
    }
    if (left[column] != found)
        fail("pathfinder: the best way costs %d and not %d", left[column], found);
    int sum = g->cost[column];
    for (long row = 1; row <= last; row++) {
        const int *next = left + row * columns;
        int target = cheapest(next, columns, column);
        if (column > 0 && next[column - 1] == target)
            column--;
        else if (next[column] != target)
            column++;
        sum += g->cost[row * columns + column];
    }
    if (sum != found)
        fail("pathfinder: the best way's cells cost %d and not %d", sum, found);
    free(left);
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct {
        long columns, rows;
        int grids;
    } problems[] = {{1000, 20, 2}, {100000, 100, 5}, {100000, 100, 25}, {100000, 100, 100}};
    struct suite s = suite_parse("rodinia/pathfinder", classes, argc, argv);
    long columns = problems[s.class_index].columns, rows = problems[s.class_index].rows;
    size_t bytes = sizeof(int) * (size_t)columns;
    int *best = suite_memory(bytes);
    do {
        uint64_t checksum = 0;
        srand(9);
        for (int i = 0; i < problems[s.class_index].grids; i++) {
            suite_start(&s);
            struct grid g = make_grid(rows, columns);
            solve(&g, best);
            suite_stop(&s);
            check(&g, best);
            checksum = suite_hash(checksum, best, bytes);
            free(g.cost);
        }
        suite_checksum(&s, checksum);
        suite_count(&s, "barriers", problems[s.class_index].grids * (rows - 1));
    } while (suite_next(&s));
    return suite_report(&s);
}
