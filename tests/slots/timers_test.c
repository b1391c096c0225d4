/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/sched/timers.h with simulated clocks, so that CLOCK_REALTIME can be set forwards
 * and back. Prints `N passed, M failed`.
 *
 */
#include "sched/timers.h"
#include "prim/clock.h"
#include "../check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MS = 1000000, SECOND = 1000 * MS, THREADS = 6 };

static uint64_t now[2] = {1000ull * SECOND, 5000ull * SECOND}; /* by enum timer_clock */
static struct thread t[THREADS];
static bool taken[THREADS]; /* by a waker: the timer expires too late */
static int ready, kicks;

uint64_t clock_ns(int clock) {
    return now[clock == CLOCK_REALTIME ? TIMER_REALTIME : TIMER_MONOTONIC];
}
bool timer_ends_wait(struct thread *of) { return !taken[of - t]; }
void slots_make_ready(struct thread *list) {
    for (; list; list = list->next) ready++;
}
void monitor_look_again(void) { kicks++; }
void lock_slow(struct lock *l) {
    (void)l;
    printf("a lock is taken twice\n");
    failed++;
}

static void begin(void) {
    timers_after_fork();
    memset(t, 0, sizeof t);
    memset(taken, 0, sizeof taken);
    ready = kicks = 0;
    timers_watched(TIMER_MONOTONIC, 0);
}
static void passes(uint64_t ns) {
    now[TIMER_MONOTONIC] += ns;
    now[TIMER_REALTIME] += ns;
}
static void arm(int i, enum timer_clock clock, int64_t from_now) {
    timer_arm(&t[i], (uint32_t)i, clock, now[clock] + (uint64_t)from_now);
}
static int due(void) { /* returns the number of waits that expire */
    ready = 0;
    timers_expire();
    return ready;
}
static bool looks(enum timer_clock clock, uint64_t from_now, uint64_t until) {
    struct timers_look look = timers_watch(until);
    return look.clock == clock && look.ns == now[clock] + from_now;
}

static void one_clock(enum timer_clock clock) {
    begin();
    check(!timers_any() && due() == 0, "nothing is armed");
    arm(0, clock, 5 * MS);
    arm(1, clock, 3 * MS);
    arm(2, clock, 9 * MS);
    check(timers_any(), "something is armed");
    check(looks(clock, 3 * MS, TIMERS_FOR_EVER), "sleeps until the first");
    passes(3 * MS - 1);
    check(due() == 0, "not before its time");
    passes(1);
    check(due() == 1 && t[1].interrupted == TIMER_ENDED, "the first is due");
    timer_disarm(&t[1]);
    timer_disarm(&t[0]);
    passes(3 * MS);
    check(due() == 0, "a timer that was disarmed is not due");
    check(looks(clock, 3 * MS, TIMERS_FOR_EVER), "sleeps until the last");
    taken[2] = true;
    passes(3 * MS);
    check(due() == 0 && !t[2].interrupted, "a waker has it already");
    check(!timers_any(), "all are over");
}

static void watched(void) {
    begin();
    timers_watch(now[TIMER_MONOTONIC] + 10 * MS);
    arm(0, TIMER_MONOTONIC, 11 * MS);
    arm(1, TIMER_REALTIME, 11 * MS);
    check(kicks == 0, "the monitor looks in time");
    check(timers_watched(TIMER_REALTIME, now[TIMER_REALTIME] + 11 * MS), "it does");
    check(!timers_watched(TIMER_REALTIME, now[TIMER_REALTIME] + 9 * MS), "not for that one");
    arm(2, TIMER_REALTIME, 9 * MS);
    check(kicks == 1, "it has to look sooner");
    timers_watch(TIMERS_FOR_EVER);
    check(!timers_watched(TIMER_REALTIME, now[TIMER_REALTIME] + 3600ull * SECOND), "it sleeps");
    arm(3, TIMER_REALTIME, -1);
    check(kicks == 2, "what is due already is seen");
    check(due() == 1, "at once");
}

static void set_forwards(void) {
    begin();
    arm(0, TIMER_REALTIME, 3600ll * SECOND);
    arm(1, TIMER_MONOTONIC, 3600ll * SECOND);
    now[TIMER_REALTIME] += 3600ull * SECOND;
    check(due() == 1 && t[0].interrupted && !t[1].interrupted, "its clock was set to its time");
}

static void set_back(void) {
    begin();
    arm(0, TIMER_REALTIME, 10 * MS);
    arm(1, TIMER_MONOTONIC, 20 * MS);
    now[TIMER_REALTIME] -= 3600ull * SECOND;
    passes(15 * MS);
    check(due() == 0, "its clock was set back");
    passes(5 * MS);
    check(due() == 1 && t[1].interrupted, "the other clock was not");
    check(looks(TIMER_REALTIME, 3600ull * SECOND - 10 * MS, TIMERS_FOR_EVER),
          "the kernel sees that the clock is set");
}

static void both(void) {
    begin();
    arm(0, TIMER_REALTIME, 50 * MS);
    check(looks(TIMER_MONOTONIC, 20 * MS, now[TIMER_MONOTONIC] + 20 * MS), "until the tick");
    check(looks(TIMER_MONOTONIC, 50 * MS, now[TIMER_MONOTONIC] + 80 * MS), "until the timer");
    arm(1, TIMER_MONOTONIC, 3600ll * SECOND);
    check(looks(TIMER_MONOTONIC, 50 * MS, TIMERS_FOR_EVER), "until the first of both");
    timer_disarm(&t[0]);
    arm(0, TIMER_REALTIME, 1800ll * SECOND);
    passes(50 * MS); /* past the expiration of the disarmed timer */
    check(due() == 0, "none is due");
    struct timers_look look = timers_watch(TIMERS_FOR_EVER);
    check(look.clock == TIMER_MONOTONIC && look.ns <= now[TIMER_MONOTONIC] + SECOND,
          "looks whether the clock was set");
}

static void over(void) {
    begin();
    timers_watch(now[TIMER_MONOTONIC] + 10 * MS);
    passes(20 * MS); /* the monitor is late */
    check(!timers_watched(TIMER_REALTIME, 1), "what is over is left to the kernel");
    check(!timers_watched(TIMER_MONOTONIC, 1), "of both clocks");
    check(!timers_watched(TIMER_REALTIME, now[TIMER_REALTIME]), "also if it is over just now");
}

static void disarmed(void) {
    begin();
    arm(0, TIMER_REALTIME, 3600ll * SECOND);
    arm(1, TIMER_MONOTONIC, 3600ll * SECOND);
    timer_disarm(&t[0]);
    timer_disarm(&t[1]);
    check(timers_watch(TIMERS_FOR_EVER).ns == TIMERS_FOR_EVER, "none is left: sleeps for ever");
    arm(0, TIMER_REALTIME, INT64_MAX - (int64_t)now[TIMER_REALTIME]);
    arm(1, TIMER_MONOTONIC, 3600ll * SECOND);
    check(looks(TIMER_MONOTONIC, 3600ull * SECOND, TIMERS_FOR_EVER), "one will never be due");
    timer_disarm(&t[0]);
}

static void abandoned(void) {
    begin();
    for (int i = 0; i < THREADS; i++) arm(i, (enum timer_clock)(i % 2), 3600ll * SECOND);
    ready = 0;
    timers_abandon();
    check(ready == THREADS && !t[0].interrupted, "all end, as if they were woken");
}

int main(void) {
    one_clock(TIMER_MONOTONIC);
    one_clock(TIMER_REALTIME);
    watched();
    set_forwards();
    set_back();
    both();
    over();
    disarmed();
    abandoned();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
