/* SPDX-License-Identifier: MIT
 *
 * runtime/cpus/share.c: worked examples, and what always holds.
 */
#include "cpus/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 128 };
static int failed, passed;

static void fail(const char *what, uint32_t pool, const uint32_t *want, uint32_t n, uint32_t turn) {
    printf("%s: pool %u, turn %u, want", what, pool, turn);
    for (uint32_t i = 0; i < n; i++) printf(" %u", want[i]);
    puts("");
    failed++;
}

/* Texts of numbers: what all want, and what they get. */
static void example(uint32_t pool, uint32_t turn, const char *wants, const char *gets) {
    uint32_t want[MOST], n = 0;
    char got[256] = "", *end;
    for (const char *p = wants; *p; p = end) want[n++] = (uint32_t)strtoul(p, &end, 10);
    for (uint32_t i = 0; i < n; i++)
        sprintf(got + strlen(got), "%s%u", i ? " " : "", share_of(pool, want, n, i, turn));
    if (strcmp(got, gets)) {
        fail(got, pool, want, n, turn);
        printf("expected %s\n", gets);
    } else {
        passed++;
    }
}

static void always(uint32_t pool, const uint32_t *want, uint32_t n) {
    uint64_t wanted = 0, total[MOST] = {0};
    uint32_t turns = 1, fewer = 0, below = 0;
    for (uint32_t i = 0; i < n; i++) wanted += want[i];
    for (uint32_t i = 0; i < n; i++) turns += want[i] != 0;
    for (uint32_t turn = 0; turn < turns * 12; turn++) {
        uint64_t sum = 0, minimal = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t got = share_of(pool, want, n, i, turn);
            total[i] += got;
            if (got < 1 || got > (pool ? pool : 1))
                return fail("out of range", pool, want, n, turn);
            if (wanted <= pool) {
                if (got != want[i] + (pool - wanted) && got != 1)
                    return fail("what is left is everybody's", pool, want, n, turn);
            } else if (got > want[i] && got > 1) {
                return fail("more than wanted", pool, want, n, turn);
            }
            sum += got;
            minimal += got == 1;
        }
        if (wanted > pool && sum > pool + minimal)
            return fail("more than there is", pool, want, n, turn);
        if (wanted > pool && sum < pool) return fail("less than there is", pool, want, n, turn);
    }
    if (wanted <= pool) return;
    /* Over some turns, nobody who wanted more has less than another. */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            fewer = want[i] <= want[j] ? want[i] : want[j];
            below = total[i] + turns * 12 / 2 < total[j];
            if (fewer && want[i] >= want[j] && below) return fail("unfair", pool, want, n, 0);
        }
}

int main(void) {
    example(2, 0, "8 8 8 8", "1 1 1 1");
    example(2, 0, "8 8", "1 1");
    example(2, 0, "8", "2");
    example(2, 0, "0 8", "1 2");
    example(2, 0, "1 8", "1 1");
    example(4, 0, "1 8", "1 3");
    example(3, 0, "8 8", "2 1");
    example(3, 1, "8 8", "1 2");
    example(8, 0, "1 2 3", "3 4 5"); /* two are left */
    example(8, 0, "0 0", "8 8");
    example(8, 0, "3 3 3", "3 3 2");
    example(8, 1, "3 3 3", "3 2 3");
    example(0, 5, "7", "1");
    example(1, 3, "1 1", "1 1");
    srand(1);
    for (int k = 0; k < 20000; k++) {
        uint32_t want[MOST], n = 1 + (uint32_t)rand() % 12;
        for (uint32_t i = 0; i < n; i++) want[i] = (uint32_t)rand() % (rand() % 2 ? 4 : 200);
        always((uint32_t)rand() % 70, want, n);
    }
    passed += !failed;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
