/* SPDX-License-Identifier: MIT */
#include "cpus/share.h"

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* If nobody gets more than `level`. */
static uint64_t given(const uint32_t *want, uint32_t n, uint32_t level)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += least(want[i], level);
    return sum;
}

uint32_t share_of(uint32_t pool, const uint32_t *want, uint32_t n, uint32_t self, uint32_t turn)
{
    uint32_t low = 0, high = pool; /* the highest level for which there is enough */
    while (low < high) {
        uint32_t level = low + (high - low + 1) / 2;
        if (given(want, n, level) <= pool)
            low = level;
        else
            high = level - 1;
    }
    uint32_t mine = least(want[self], low), left = pool - (uint32_t)given(want, n, low);
    uint32_t unsatisfied = 0, rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (want[i] <= low)
            continue;
        if (i < self)
            rank++;
        unsatisfied++;
    }
    if (!unsatisfied)
        mine += left;
    else if (want[self] > low)
        mine += (rank + turn) % unsatisfied < left;
    return mine ? mine : 1;
}
