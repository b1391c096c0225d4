/* SPDX-License-Identifier: MIT
 *
 * The spin threshold: how long a waiter of this program may spin before its slot runs another
 * thread (docs/design/apple.md).
 *
 * Spinning loses time of a slot, and so does unmounting: two switches, cold caches, a lock held by
 * a thread that does not run. Which loses less depends on the program, so it is measured. Each slot
 * adds up the time from the begin of a wait until it runs code of the program again, of any thread.
 * APPLE's controller (apple.h) tries thresholds, and keeps the one that loses least. Here each wait
 * that may spin counts as an event of an epoch, and not only failed spins: where spinning always
 * succeeds, a shorter threshold would lose less.
 */
#ifndef LISSOM_THRESHOLD_H
#define LISSOM_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

struct slot;

/* Lost time of a slot, written by its holder. Times are in tsc ticks. */
struct lost_time {
    /* since then, it runs no code of the program; 0: it does, or the threshold does not matter */
    uint64_t since;
    uint32_t weight; /* number of waits that the timed one stands for */
    uint64_t lost;   /* sum */
    /* the parts of long waits that do not count as lost: no threshold would have changed them */
    uint64_t beyond;
    uint32_t events;
};

enum {
    THRESHOLD_MAX_NS = 1000000,
    /* One of so many futex waits and wakes is timed, and counts for all: reading the clock costs a
     * twentieth of a wait. A prime, for programs whose waits come in rounds. */
    THRESHOLD_SAMPLE = 7,
};

/* Start with a threshold of `ns`, at most THRESHOLD_MAX_NS. fixed: it stays, and nothing is
 * measured; otherwise the threshold adapts, and `ns` is ignored. Pre: before there are threads. */
void threshold_init(bool fixed, uint32_t ns);
void threshold_after_fork(void);
/* Return the threshold in ns; it changes from epoch to epoch. */
uint32_t threshold_ns(void);
/* Count a wait that may spin. Returns whether to time it. By the holder of s. */
bool threshold_event(struct slot *s);
/* Return whether to time a wake. */
bool threshold_samples(const struct slot *s);
/* A thread that holds s begins to wait at `now`. weight: the number of waits that this one stands
 * for. */
void threshold_wait_begins(struct slot *s, uint64_t now, uint32_t weight);
/* The program's code runs on s again. */
void threshold_wait_ended(struct slot *s);
/* Add `times` losses of `ticks` each: of a wait in a loop of the program on s that has ended or
 * released the slot, or of wakes. */
void threshold_lost(struct slot *s, uint64_t ticks, uint32_t times);

#endif
