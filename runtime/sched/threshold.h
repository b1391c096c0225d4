/* SPDX-License-Identifier: MIT
 *
 * How long a waiter may spin before its slot goes to another thread, for this program:
 * docs/adapt.md.
 *
 * Spinning loses the time of a slot, and so does unmounting: the switch there and back, the cold
 * caches, the lock that is then held by a thread that does not run. Which is less depends on the
 * program, so it is measured: each slot adds up the time from a wait's begin until it runs code of
 * the program again, by whichever thread, and APPLE's controller (apple.h) tries thresholds and
 * stays with the one with which least is lost. The event that ends an epoch is here each wait for
 * which there was the choice, and not only those that were spun for in vain: where spinning always
 * succeeds, a shorter threshold would lose less.
 */
#ifndef LISSOM_THRESHOLD_H
#define LISSOM_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

struct slot;

/* Of a slot; by who holds it. Time is in ticks of the time stamp counter. */
struct lost_time {
    /* it runs nothing of the program since then; 0: it does, or that is no affair of the
     * threshold */
    uint64_t since;
    uint32_t weight; /* what the time since then counts for: waits that are not timed */
    uint64_t lost;   /* in all */
    /* of longer waits what is not counted as lost, for nobody can say that another threshold would
     * have helped */
    uint64_t beyond;
    uint32_t events;
};

enum {
    THRESHOLD_MAX_NS = 1000000,
    /* Of so many futex waits, and wakes, one is timed, for all: a look at the clock costs a
     * twentieth of a wait. A prime, for programs whose waits come in rounds. */
    THRESHOLD_SAMPLE = 7,
};

/* Pre: before there are threads. fixed: ns (at most THRESHOLD_MAX_NS) for good, and nothing is
 * added up. */
void threshold_init(bool fixed, uint32_t ns);
void threshold_after_fork(void);
/* ns; changes from epoch to epoch. */
uint32_t threshold_ns(void);
/* A wait for which there is the choice. By who holds s. Post: whether it is to be timed. */
bool threshold_event(struct slot *s);
/* Whether what goes on beside waits is to be timed. */
bool threshold_samples(const struct slot *s);
/* A thread that holds s waits, from now on; for so many. */
void threshold_wait_begins(struct slot *s, uint64_t now, uint32_t weight);
/* The program's code runs on s again, or goes on. */
void threshold_wait_ended(struct slot *s);
/* So much, so many times: of a wait in a loop of the program itself, on s, that is over or goes on
 * without the slot, or of wakes. */
void threshold_lost(struct slot *s, uint64_t ticks, uint32_t times);

#endif
