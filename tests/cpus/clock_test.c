/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/prim/clock.c: the rate of the time stamp counter, measured by a thread that may
 * be interrupted at any point.
 *
 */
#include "prim/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { RATE = 2600 }; /* ticks per microsecond */

static uint64_t now, calls; /* ns */
/* ns: `step` per step; one step in `chance` is interrupted for up to `longest` */
static uint64_t step, chance, longest;
static uint64_t state = 1;

static uint64_t random_below(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static void pass(void) {
    now += step + (chance && random_below(chance) == 0 ? random_below(longest) : 0);
}

static void read_simulated(struct clock_reading *r) {
    calls++;
    pass();
    r->tsc = now * RATE / 1000;
    pass();
    r->ns = now;
    pass();
    r->width = now * RATE / 1000 - r->tsc;
}

int main(void) {
    static const struct {
        const char *what;
        uint64_t step, chance, longest, patience;
    } cases[] = {
        {"never interrupted", 40, 0, 1, 0}, {"now and then", 40, 1000, 30000000, 200},
        {"often", 40, 10, 30000000, 2000},  {"nearly always", 40, 2, 3000000, 100000},
        {"a slow clock", 3000, 0, 1, 0},    {"a slow clock, often", 3000, 10, 30000000, 5000},
    };
    int passed = 0, failed = 0;
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        step = cases[c].step, chance = cases[c].chance, longest = cases[c].longest;
        for (int i = 0; i < 2000; i++) {
            uint64_t from = now, rate = clock_tsc_per_us(read_simulated);
            uint64_t ms = (now - from) / 1000000;
            if (rate >= RATE * 98 / 100 && rate <= RATE * 102 / 100 &&
                ms <= cases[c].patience + 2) {
                passed++;
                continue;
            }
            if (failed++ < 5)
                printf("%s: %lu ticks in a us, after %lu ms\n", cases[c].what, (unsigned long)rate,
                       (unsigned long)ms);
        }
    }
    uint64_t rate = clock_tsc_per_us(clock_read), again = clock_tsc_per_us(clock_read);
    if (rate < again * 98 / 100 || rate > again * 102 / 100) {
        printf("here: %lu, then %lu ticks in a us\n", (unsigned long)rate, (unsigned long)again);
        failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
