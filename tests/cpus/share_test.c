/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/cpus/share.c: worked examples, and invariants of random claims.
 *
 */
#include "cpus/share.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = SHARE_PROGRAMS };
static int failed, passed;

static void fail(const char *what, uint32_t pool, const struct share_claim *c, uint32_t n,
                 uint32_t turn) {
    printf("%s: pool %u, turn %u, claims", what, pool, turn);
    for (uint32_t i = 0; i < n; i++)
        printf(" %u*%u@%u*%u", c[i].want, c[i].weight, (unsigned)c[i].group, c[i].group_weight);
    puts("");
    failed++;
}

/* Parse claims WANT, WANT*WEIGHT or WANT*WEIGHT@GROUP*WEIGHT. Weights and groups default to 1. */
static uint32_t claims_of(const char *text, struct share_claim *c) {
    uint32_t n = 0;
    for (char *p = (char *)text; *p; n++) {
        c[n] = (struct share_claim){(uint32_t)strtoul(p, &p, 10), 1, 1, 1};
        if (*p == '*') c[n].weight = (uint32_t)strtoul(p + 1, &p, 10);
        if (*p == '@') c[n].group = strtoul(p + 1, &p, 10);
        if (*p == '*') c[n].group_weight = (uint32_t)strtoul(p + 1, &p, 10);
        p += *p == ' ';
    }
    return n;
}

/* Check the number of CPUs that each claim gets; claims and numbers are texts. */
static void example(uint32_t pool, uint32_t turn, const char *claims, const char *gets) {
    struct share_claim c[MOST];
    uint32_t n = claims_of(claims, c);
    char got[256] = "";
    for (uint32_t i = 0; i < n; i++)
        sprintf(got + strlen(got), "%s%u", i ? " " : "", share_of(pool, c, n, i, turn));
    if (strcmp(got, gets)) {
        fail(got, pool, c, n, turn);
        printf("expected %s\n", gets);
    } else {
        passed++;
    }
}

/* Check the average number of CPUs that each claim gets over many turns, in hundredths. */
static void average(uint32_t pool, const char *claims, const char *gets) {
    enum { TURNS = 1000 };
    struct share_claim c[MOST];
    uint32_t n = claims_of(claims, c);
    char got[256] = "";
    for (uint32_t i = 0; i < n; i++) {
        uint32_t sum = 0;
        for (uint32_t turn = 0; turn < TURNS; turn++) sum += share_of(pool, c, n, i, turn);
        sprintf(got + strlen(got), "%s%u", i ? " " : "", (sum + TURNS / 200) / (TURNS / 100));
    }
    if (strcmp(got, gets)) {
        fail(got, pool, c, n, TURNS);
        printf("expected %s\n", gets);
    } else {
        passed++;
    }
}

static void always(uint32_t pool, const struct share_claim *c, uint32_t n, bool equal) {
    uint64_t wanted = 0, total[MOST] = {0};
    uint32_t turns = 1, below = 0;
    for (uint32_t i = 0; i < n; i++) wanted += c[i].want;
    for (uint32_t i = 0; i < n; i++) turns += c[i].want != 0;
    for (uint32_t turn = 0; turn < turns * 12; turn++) {
        uint64_t sum = 0, minimal = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t got = share_of(pool, c, n, i, turn);
            total[i] += got;
            if (got < 1 || got > (pool ? pool : 1)) return fail("out of range", pool, c, n, turn);
            if (wanted <= pool) {
                if (got != c[i].want + (pool - wanted) && got != 1)
                    return fail("what is left is everybody's", pool, c, n, turn);
            } else if (got > c[i].want && got > 1) {
                return fail("more than wanted", pool, c, n, turn);
            }
            sum += got;
            minimal += got == 1;
        }
        if (wanted > pool && equal && sum > pool + minimal)
            return fail("more than there is", pool, c, n, turn);
        if (wanted > pool && equal && sum < pool)
            return fail("less than there is", pool, c, n, turn);
    }
    if (wanted <= pool) return;
    /* Over several turns, a program gets as much as any other of its group without more demand and
     * weight. Half a CPU less on average is accepted. */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            bool heavier = c[i].group == c[j].group && c[i].weight >= c[j].weight;
            below = total[i] + turns * 12 / 2 < total[j];
            if (c[j].want && heavier && c[i].want >= c[j].want && below)
                return fail("unfair", pool, c, n, 0);
        }
}

static void weights(void) {
    uint32_t before = share_weight(-30);
    for (int32_t nice = -29; nice < 50; nice++) {
        uint32_t w = share_weight(nice);
        if (w < 1 || w > SHARE_WEIGHT_MAX || w > before) {
            printf("weight of nice %d: %u\n", nice, w);
            failed++;
        }
        before = w;
    }
    passed += share_weight(0) == 1024;
    passed += share_weight(10) > 100 && share_weight(10) < 120;
}

int main(void) {
    example(2, 0, "8 8 8 8", "1 1 1 1");
    example(2, 0, "8 8", "1 1");
    example(2, 0, "8", "2");
    example(2, 0, "0 8", "1 2");
    example(2, 0, "1 8", "1 1");
    example(4, 0, "1 8", "1 3");
    example(3, 0, "8 8", "1 2");
    example(3, 1, "8 8", "2 1");
    example(8, 0, "1 2 3", "3 4 5"); /* every program may use the two spare CPUs */
    example(8, 0, "0 0", "8 8");
    average(8, "3 3 3", "267 267 267");
    average(3, "8 8", "150 150");
    example(0, 5, "7", "1");
    example(1, 3, "1 1", "1 1");
    /* by weight */
    example(4, 0, "8*3 8", "3 1");
    average(8, "8*3 8*2", "480 320");
    example(8, 0, "2*9 8", "2 6");
    /* parts 1.8 and 0.2: the first program has a slot on the second CPU for 0.9 of the time, where
     * its weight is 10 to 1 */
    average(2, "8*10 8", "190 100");
    average(2, "8*2 8", "150 100");
    average(4, "8*10 8 8", "336 100 100");
    average(2, "8@1*10 8@2*1", "190 100");
    /* by groups: the weights of programs count within one group */
    example(4, 0, "8*10@1*1 8*1@2*1", "2 2");
    example(6, 0, "8*2@1*1 8*1@1*1 8*7@2*1", "2 1 3");
    example(8, 0, "8@1*3 8@2*1", "6 2");
    example(8, 0, "1@1*3 8@2*1", "1 7"); /* a group's unused share */
    weights();
    srand(1);
    for (int k = 0; k < 20000; k++) {
        struct share_claim c[MOST];
        bool equal = rand() % 2;
        uint32_t n = 1 + (uint32_t)rand() % 12;
        for (uint32_t i = 0; i < n; i++) {
            c[i] = (struct share_claim){(uint32_t)rand() % (rand() % 2 ? 4 : 200), 1, 1, 1};
            if (equal) continue;
            c[i].weight = rand() % 2 ? share_weight(rand() % 40 - 20) : 1 + (uint32_t)rand() % 9;
            c[i].group = (uint64_t)rand() % 3;
            c[i].group_weight = 1 + (uint32_t)rand() % (rand() % 2 ? 10000 : 3);
        }
        always((uint32_t)rand() % 70, c, n, equal);
    }
    passed += !failed;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
