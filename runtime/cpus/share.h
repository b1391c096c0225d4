/* SPDX-License-Identifier: MIT
 *
 * How CPUs are shared among programs that know of each other: max-min fair by weight, in whole
 * CPUs. Functions of their arguments.
 */
#ifndef LISSOM_SHARE_H
#define LISSOM_SHARE_H

#include <stdint.h>

/* What a program wants. The kernel shares CPUs among groups, each group's among its programs. */
struct share_claim {
    uint32_t want;   /* threads that could run */
    uint32_t weight; /* among those of its group: 1..SHARE_WEIGHT_MAX */
    uint64_t group;
    uint32_t group_weight; /* as told by the group's first program: 1..SHARE_WEIGHT_MAX */
};

enum { SHARE_PROGRAMS = 128, SHARE_WEIGHT_MAX = 100000, SHARE_WANT_MAX = 1 << 12 };

/* What program `self` of n may use of `pool` CPUs.
 *
 * Everybody gets what he wants, but nobody more than his weight's part of what the others leave.
 * What does not come out even goes round: to those that `turn` says, a number that counts up. If
 * nobody wants more, what is left is promised to each of them: a program that begins to run more
 * threads need not ask first; if several do at once, they find out at the next look. Each has one
 * at least. Where that is more than the part of one of them, the kernel shares his CPU by the same
 * weights, with a slot of another.
 *
 * Pre: self < n <= SHARE_PROGRAMS, want <= SHARE_WANT_MAX, pool <= SHARE_WANT_MAX.
 * Post: 1..max(pool, 1). One caller at a time. */
uint32_t share_of(uint32_t pool, const struct share_claim *claim, uint32_t n, uint32_t self,
                  uint32_t turn);

/* Returns the kernel's weight of a thread: 1024 for nice 0, a fifth less for each step. nice: -20
 * to 19, or SHARE_NICE_IDLE for SCHED_IDLE; what is beyond is clamped. */
uint32_t share_weight(int32_t nice);
enum { SHARE_NICE_IDLE = 26 };

#endif
