/* SPDX-License-Identifier: MIT
 *
 * How long a waiter may spin: the controller of APPLE (Shan et al., adaptive pause-loop exiting).
 * Pure functions of their arguments: no clock, no I/O, no allocation, no shared state. The caller
 * counts, ends epochs, and applies the returned threshold. docs/design/apple.md.
 *
 * A round has three epochs, with the thresholds T, T+d and T-d. Then T becomes the threshold whose
 * epoch had the least inefficiency. Units are the caller's (ns in the runtime, cycles in KVM).
 * Costs and time need the same unit only within a round.
 */
#ifndef LISSOM_APPLE_H
#define LISSOM_APPLE_H

#include <stdbool.h>
#include <stdint.h>

struct apple_limits {
    uint32_t lower, upper; /* bounds of the threshold, inclusive. Pre: lower <= upper */
    uint32_t step;         /* least d; 0: T never changes */
    /* d is this part of T, if that is more than `step`; 0: always `step`, as in the paper */
    uint32_t step_permille;
    /* least advantage in inefficiency for which T changes; 0: any, as in the paper */
    uint32_t margin_permille;
};

struct apple {
    struct apple_limits limits;
    uint32_t base;  /* T */
    uint32_t trial; /* index of the current epoch's threshold */
    uint32_t threshold[3];
    uint64_t wasted[3], time[3]; /* of the finished epochs of this round */
    uint32_t rounds, moves;      /* rounds so far, and those that changed T; both wrap */
};

/* Start with T = threshold, clamped to the limits. If the step is 0, T never changes. */
void apple_init(struct apple *a, const struct apple_limits *limits, uint32_t threshold);

/* Returns the threshold for the current epoch. */
static inline uint32_t apple_threshold(const struct apple *a) { return a->threshold[a->trial]; }

/* End an epoch of length `time`, of which `wasted` was lost: by spins in vain, and by the switches
 * that they did not save. `wasted` may exceed `time`. Returns the threshold for the next epoch. An
 * epoch of time 0 is repeated. */
uint32_t apple_epoch(struct apple *a, uint64_t wasted, uint64_t time);

#endif
