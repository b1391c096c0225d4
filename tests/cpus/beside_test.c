/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/cpus/beside.c on simulated machines: only CPU time is simulated.
 *
 */
#include "cpus/beside.h"

#include <stdio.h>

enum { LOOK_US = 12000, SECOND_US = 1000000 };
static int failed, passed;

/* Threads that only compute, or that each wait for all others all the time. */
enum kind { COMPUTES, WAITS };

struct machine {
    uint32_t cpus, hogs;
};

struct program {
    enum kind kind;
    uint32_t threads;
    struct beside_share share;
    struct beside beside;
    uint64_t now_us;
};

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Simulate the CPU time offered to one of n slots and the CPU time used by all of them. */
static struct beside_look measure(const struct program *p, const struct machine *m) {
    uint32_t n = beside_slots(&p->beside, &p->share), runs = least(n, p->threads);
    double offered = runs + m->hogs > m->cpus ? (double)m->cpus / (runs + m->hogs) : 1;
    /* Threads that wait for all others run only while none of them has lost its CPU. */
    uint32_t lost = least(m->hogs, runs);
    double used = runs * offered;
    for (uint32_t i = 0; p->kind == WAITS && runs > 1 && i < lost; i++) used *= 0.5;
    return (struct beside_look){
        .now_us = p->now_us,
        .slots = n,
        .others = runs + m->hogs > m->cpus,
        .used = (uint32_t)(used * BESIDE_CPU),
        .offered = (uint32_t)(offered * BESIDE_CPU),
        .threads = p->threads,
    };
}

/* Run for `seconds`. Returns the average number of slots in the last two seconds, in
 * hundredths. */
static uint32_t run(struct program *p, const struct machine *m, uint32_t seconds) {
    uint64_t end = p->now_us + seconds * SECOND_US, sum = 0, looks = 0;
    while (p->now_us < end) {
        struct beside_look look = measure(p, m);
        beside_look(&p->beside, &look, &p->share);
        p->now_us += LOOK_US;
        if (p->now_us + SECOND_US * 2 > end) {
            sum += beside_slots(&p->beside, &p->share);
            looks++;
        }
    }
    return (uint32_t)(sum * 100 / (looks ? looks : 1));
}

static void is(const char *what, uint32_t got, uint32_t from, uint32_t to) {
    if (got >= from && got <= to) {
        passed++;
        return;
    }
    printf("%s: %u, expected %u to %u\n", what, got, from, to);
    failed++;
}

static struct program program(enum kind kind, uint32_t threads, uint32_t share, bool may_exceed) {
    return (struct program){kind, threads, {share, may_exceed}, {0}, SECOND_US};
}

int main(void) {
    const struct machine quiet = {2, 0}, two_hogs = {2, 2}, of_16 = {16, 1}, crowd = {2, 32};

    struct program p = program(WAITS, 32, 2, true);
    is("alone, all slots", run(&p, &quiet, 5), 200, 200);
    is("a hog on each CPU, little more than one slot", run(&p, &two_hogs, 5), 100, 115);
    is("... after which both are used again at once", run(&p, &quiet, 1), 190, 200);

    p = program(WAITS, 16, 16, true);
    is("one hog on 16 CPUs takes one slot", run(&p, &of_16, 5), 1495, 1510);

    p = program(COMPUTES, 32, 2, true);
    is("alone, no more slots than CPUs", run(&p, &quiet, 5), 200, 200);
    is("beside hogs, as many as threads, nearly always", run(&p, &two_hogs, 5), 2900, 3200);
    is("... until the hogs have gone", run(&p, &quiet, 5), 200, 200);
    is("beside a crowd the same", run(&p, &crowd, 5), 2900, 3200);
    p = program(COMPUTES, 2, 2, true);
    is("two threads that compute need two slots", run(&p, &two_hogs, 5), 200, 200);

    p = program(COMPUTES, 32, 2, false);
    is("no more than a quota is worth, or the user wants", run(&p, &two_hogs, 5), 200, 200);
    p = program(COMPUTES, 32, 2, true);
    run(&p, &two_hogs, 2);
    p.share.may_exceed = false;
    is("... at once", beside_slots(&p.beside, &p.share) * 100, 200, 200);

    p = program(WAITS, 32, 1, false);
    is("one slot stays", run(&p, &two_hogs, 5), 100, 100);

    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
