/* SPDX-License-Identifier: MIT */
// The cheapest path through a grid, row by row, as pathfinder of Rodinia. One thread makes the
// grid, static loops compute the rows in parallel, and one thread prints the costs. Not malleable:
// its loops are static. --size: columns.
#include <omp.h>

#include "mix.h"

enum { ROWS = 100 };
static struct mix mix;
static int *wall, *cost, *next;
static char *text;

static inline int least(int a, int b) { return a < b ? a : b; }

static uint64_t round_of_paths(void) {
    long n = mix.size;
    for (long i = 0; i < ROWS * n; i++)
        wall[i] = (int)(mix_random(11, (uint64_t)i) % 10);
    memcpy(cost, wall, sizeof *cost * (size_t)n);
    for (int row = 1; row < ROWS; row++) {
        int *swap;
#pragma omp parallel for schedule(static) num_threads(mix.threads)
        for (long i = 0; i < n; i++) {
            int best = cost[i];
            best = i > 0 ? least(best, cost[i - 1]) : best;
            best = i < n - 1 ? least(best, cost[i + 1]) : best;
            next[i] = wall[row * n + i] + best;
        }
        swap = cost;
        cost = next;
        next = swap;
    }
    uint64_t hash = 0;
    for (long i = 0; i < n; i++) {
        int length = snprintf(text, 64, "%d ", cost[i]);
        hash = mix_hash(hash, text, (size_t)length);
        if (cost[i] < 0 || cost[i] > 9 * ROWS)
            fail("pathfinder: a way costs %d", cost[i]);
    }
    return hash;
}

int main(int argc, char **argv) {
    mix = mix_parse("pathfinder", 200000, 10, argc, argv);
    wall = mix_memory(sizeof *wall * (size_t)mix.size * ROWS);
    cost = mix_memory(sizeof *cost * (size_t)mix.size);
    next = mix_memory(sizeof *next * (size_t)mix.size);
    text = mix_memory(64);
    return mix_run(&mix, round_of_paths);
}
