/* SPDX-License-Identifier: MIT
 *
 * Share CPUs among programs that know each other: max-min fair by weight, in whole CPUs. Results
 * depend on the arguments only.
 */
#ifndef LISSOM_SHARE_H
#define LISSOM_SHARE_H

#include <stdint.h>

/* One program's demand. The kernel divides the CPUs among scheduling groups, and the part of each
 * group among its programs. */
struct share_claim {
    uint32_t want;   /* threads that could run */
    uint32_t weight; /* among programs of its group: 1..SHARE_WEIGHT_MAX */
    uint64_t group;
    uint32_t group_weight; /* reported by the group's first program: 1..SHARE_WEIGHT_MAX */
};

enum { SHARE_PROGRAMS = 128, SHARE_WEIGHT_MAX = 100000, SHARE_WANT_MAX = 1 << 12 };

/* Return how many of `pool` CPUs program `self` of n may use: weighted max-min fair.
 *
 * A program gets as many CPUs as it has threads that could run, but no more than its weight's part
 * of what the other programs leave. A fraction of a CPU is granted as a whole CPU for that fraction
 * of the turns; `turn` is the number of the current turn. If all programs together want fewer CPUs
 * than there are, each may use the rest: a program that starts more threads need not ask first.
 * Each program gets at least one CPU. If its part is smaller, another program may use the same CPU,
 * which the kernel then divides by weight.
 *
 * Returns 1 to max(pool, 1). One caller at a time. Pre: self < n <= SHARE_PROGRAMS, want <=
 * SHARE_WANT_MAX, pool <= SHARE_WANT_MAX. */
uint32_t share_of(uint32_t pool, const struct share_claim *claim, uint32_t n, uint32_t self,
                  uint32_t turn);

/* Return the kernel's weight of a thread: 1024 for nice 0, a fifth less for each step. nice: -20 to
 * 19, or SHARE_NICE_IDLE for SCHED_IDLE; other values are clamped. */
uint32_t share_weight(int32_t nice);
enum { SHARE_NICE_IDLE = 26 };

#endif
