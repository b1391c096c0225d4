/* SPDX-License-Identifier: MIT
 *
 * How CPUs are shared among programs that know of each other: max-min fair, in whole CPUs. Pure
 * functions.
 */
#ifndef LISSOM_SHARE_H
#define LISSOM_SHARE_H

#include <stdint.h>

/* What program `self` of n may use of `pool` CPUs, if program i has want[i] threads that could run.
 *
 * Everybody gets what he wants, but nobody more than an equal part of what the others leave. What
 * does not come out even goes round: to those that `turn` says, a number that counts up. If nobody
 * wants more, what is left is promised to each of them: a program that begins to run more threads
 * need not ask first; if several do at once, they find out at the next look.
 *
 * Pre: self < n. Post: 1..max(pool, 1); if all want more than they get, at most pool in all, but
 * for those that get the one that each has. */
uint32_t share_of(uint32_t pool, const uint32_t *want, uint32_t n, uint32_t self, uint32_t turn);

#endif
