/* SPDX-License-Identifier: MIT */
// Random numbers of the programs of this suite: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood,
// "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). The caller owns the state.
#ifndef LISSOM_WORKLOADS_PARSEC_DRAW_H
#define LISSOM_WORKLOADS_PARSEC_DRAW_H

#include <stdint.h>

// Return the next random number.
static inline uint64_t draw(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Return a random number from 0 to limit - 1. Pre: `limit` is 1 to 2^32.
static inline long draw_below(uint64_t *state, long limit) {
    return (long)((draw(state) >> 32) * (uint64_t)limit >> 32);
}

// Return a random number in [0, 1).
static inline double draw_uniform(uint64_t *state) { return (double)(draw(state) >> 11) * 0x1p-53; }

#endif
