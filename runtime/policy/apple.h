/* SPDX-License-Identifier: MIT
 *
 * How long to let a waiter spin before something is done about it: the controller of APPLE (Shan et
 * al., adaptive pause-loop exiting). Pure functions of their arguments: no clock, no I/O, no
 * allocation, no shared state. The caller counts, says when an epoch is over, and applies the
 * threshold that it is given. docs/adapt.md.
 *
 * One round is three epochs, with the thresholds T, T+d and T-d. Then T becomes the one of the
 * three whose epoch had the least inefficiency. Units are the caller's (here ns, in KVM cycles);
 * costs and time only need the same unit within one round.
 */
#ifndef LISSOM_ADAPT_APPLE_H
#define LISSOM_ADAPT_APPLE_H

#include <stdbool.h>
#include <stdint.h>

struct apple_limits {
    uint32_t lower, upper; /* bounds of the threshold, both allowed. Pre: lower <= upper */
    uint32_t step;         /* d is this, ... */
    /* ... or so much of T, if that is more. 0: always `step`, as in the paper */
    uint32_t step_permille;
    /* how much less inefficient another threshold must be for T to move. 0: at all, as in the
     * paper */
    uint32_t margin_permille;
};

struct apple {
    struct apple_limits limits;
    uint32_t base;  /* T */
    uint32_t trial; /* which threshold this epoch has: an index into those below */
    uint32_t threshold[3];
    uint64_t wasted[3], time[3]; /* of the epochs of this round that are over */
    uint32_t rounds, moves;      /* rounds so far, and those after which T was another. They wrap */
};

/* Starts with T = threshold, brought within the limits. A step of 0 means that T stays for good. */
void apple_init(struct apple *a, const struct apple_limits *limits, uint32_t threshold);

/* The threshold to use now. */
static inline uint32_t apple_threshold(const struct apple *a) { return a->threshold[a->trial]; }

/* An epoch is over, in which so much of `time` was wasted: by spins that were for nothing and by
 * the switches that they did not save. wasted may be more than time. Post: the next epoch's
 * threshold. An epoch with no time says nothing, and is done again. */
uint32_t apple_epoch(struct apple *a, uint64_t wasted, uint64_t time);

#endif
