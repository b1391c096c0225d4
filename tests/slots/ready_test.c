/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/sched/ready.h with the real clock: slices are made so long, or so short, that
 * its progress does not matter. Prints `N passed, M failed`.
 *
 */
#include "sched/ready.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 24, STEPS = 200000 };

struct scheduler sched;

static struct slot s;
static struct thread t[THREADS];

/* Start with empty queues, and with slices of hours or of zero length. */
static void begin(bool long_slice) {
    sched.tsc_per_us = long_slice ? 1ull << 40 : 0;
    memset(&s, 0, sizeof s);
    memset(t, 0, sizeof t);
    for (int i = 0; i < THREADS; i++) ready_slice_ended(&t[i]);
}

static void has_lag(struct thread *of) { of->lag = (int64_t)1 << 50; }

/* Dequeue all threads. Returns their numbers in order, as letters. */
static const char *order(void) {
    static char names[THREADS + 1];
    struct thread *next;
    int n = 0;
    while ((next = ready_pop(&s))) names[n++] = (char)('a' + (next - t));
    names[n] = 0;
    return names;
}

static void orders(void) {
    begin(true);
    for (int i = 0; i < 4; i++) ready_push(&s, &t[i]);
    check(!strcmp(order(), "abcd"), "first come, first served");
    check(!ready_pop(&s), "nothing is left");

    begin(true);
    ready_push_expired(&s, &t[0]);
    ready_push_expired(&s, &t[1]);
    has_lag(&t[2]);
    has_lag(&t[3]);
    ready_push(&s, &t[2]);
    ready_push(&s, &t[3]);
    check(!strcmp(order(), "cdab"), "who has had little goes before those whose slice has ended");

    begin(true);
    ready_push_expired(&s, &t[0]);
    ready_push(&s, &t[1]);
    check(!strcmp(order(), "ab"), "who is new, or has just had a slice, does not");

    begin(true);
    ready_push(&s, &t[0]);
    ready_push_expired(&s, &t[1]);
    ready_push(&s, &t[2]);
    check(!strcmp(order(), "abc"), "nor past one that has come between");

    begin(true);
    ready_push_expired(&s, &t[0]);
    ready_push_expired(&s, &t[1]);
    ready_unpop(&s, ready_pop(&s));
    has_lag(&t[2]);
    ready_push(&s, &t[2]);
    check(!strcmp(order(), "cab"), "who was put back is where he was");

    begin(true);
    ready_push_expired(&s, &t[0]);
    has_lag(&t[1]);
    ready_push(&s, &t[1]);
    ready_push_first_expired(&s, &t[2]);
    check(!strcmp(order(), "bca"), "who lets others go first is next after them");

    begin(false);
    for (int i = 2; i < 6; i++) ready_push(&s, &t[i]);
    ready_push_expired(&s, &t[0]);
    ready_push_expired(&s, &t[1]);
    ready_pop(&s); /* the other threads wait from now on */
    for (uint64_t now = tsc(); tsc() - now < 1000;);
    check(ready_pop(&s) == &t[0], "after a slice it is the turn of those behind");
    check(ready_pop(&s) != &t[1], "of one of them");

    /* A thread that pops its successor and puts it back (ready_unpop) must not use up its turn. */
    begin(true);
    for (int i = 1; i < 4; i++) ready_push(&s, &t[i]);
    ready_push_expired(&s, &t[0]);
    sched.tsc_per_us = 4; /* a slice is 12,000 ticks */
    int runs[4] = {0};
    for (int i = 0; i < 40; i++) {
        for (uint64_t now = tsc(); tsc() - now < 20000;);
        struct thread *next = ready_pop(&s);
        runs[next - t]++;
        if (i % 2)
            for (uint64_t now = tsc(); tsc() - now < 20000;);
        struct thread *after = ready_pop(&s);
        ready_push_expired(&s, next);
        ready_unpop(&s, after);
    }
    check(runs[0] && runs[1] && runs[2] && runs[3], "who was only looked at has not had a turn");

    begin(true);
    ready_push_expired(&s, &t[0]);
    has_lag(&t[1]);
    ready_push(&s, &t[1]);
    struct thread *list = ready_take_all(&s);
    check(list == &t[1] && list->next == &t[0] && !t[0].next && !s.ready_count && !ready_pop(&s),
          "all are taken");
    ready_push(&s, &t[2]);
    check(!strcmp(order(), "c"), "and others come");
}

static void credits(void) {
    begin(true);
    ready_charge(&s, &t[0]);
    check(t[0].lag == 0, "with nobody behind nothing is counted");
    ready_push_expired(&s, &t[1]);
    t[0].mounted_at = tsc() - 1000000;
    ready_charge(&s, &t[0]);
    int64_t after = t[0].lag;
    check(after <= -1000000, "what was run is taken");
    ready_charge(&s, &t[0]);
    check(t[0].lag > after - 1000000, "once");

    begin(false);
    sched.tsc_per_us = 1000; /* a slice is 3,000,000 ticks */
    ready_push_expired(&s, &t[1]);
    t[0].mounted_at = 1;
    ready_charge(&s, &t[0]);
    check(t[0].lag == -3000000, "a slice at most");
    t[0].lag_at = 1;
    ready_push(&s, &t[0]);
    check(t[0].lag == 3000000, "nor is more than a slice given");
    check(!strcmp(order(), "ab"), "which is enough");
    ready_push_expired(&s, &t[1]);
    ready_push_expired(&s, &t[2]);
    t[0].lag = 0;
    t[0].lag_at = tsc() - 400000;
    ready_push(&s, &t[0]);
    check(t[0].lag >= 100000 && t[0].lag < 3000000, "the share of one of four");
}

/* Compare random operations with a simple array. */
static void at_random(void) {
    char list[THREADS];
    int n = 0, fresh = 0;
    bool on[THREADS] = {false}, good = true;
    begin(true);
    srand(1);
    for (int step = 0; step < STEPS && good; step++) {
        int i = rand() % THREADS, at;
        switch (rand() % 4) {
        case 0: /* push, with lag or without */
            if (on[i]) break;
            ready_slice_ended(&t[i]);
            if (rand() % 2) has_lag(&t[i]);
            at = t[i].lag || n == fresh ? fresh++ : n;
            memmove(list + at + 1, list + at, (size_t)(n++ - at));
            list[at] = (char)i;
            on[i] = true;
            ready_push(&s, &t[i]);
            break;
        case 1:
            if (on[i]) break;
            list[n++] = (char)i;
            on[i] = true;
            ready_push_expired(&s, &t[i]);
            break;
        default: {
            struct thread *next = ready_pop(&s);
            good = next ? n && next == &t[(int)list[0]] : !n;
            if (!next || !good) break;
            if (rand() % 8 == 0) {
                ready_unpop(&s, next);
                break;
            }
            on[(int)list[0]] = false;
            memmove(list, list + 1, (size_t)--n);
            fresh -= fresh > 0;
        }
        }
        good = good && s.ready_count == (uint32_t)n && s.active_count == (uint32_t)fresh &&
               (n ? s.ready_tail == &t[(int)list[n - 1]] : !s.ready_tail) && !s.ready_head == !n &&
               (fresh ? s.active_tail == &t[(int)list[fresh - 1]] : !s.active_tail);
    }
    check(good, "at random");
}

int main(void) {
    orders();
    credits();
    at_random();
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
