/* SPDX-License-Identifier: MIT */
// The random numbers of the NAS Parallel Benchmarks: x' = a * x mod 2^46, with a = 5^13, as in
// section 2.3 of report RNR-94-007 (Bailey, Barszcz et al., 1994). Seeds and multipliers are odd
// whole numbers below 2^46 in a double. A random number is the new seed divided by 2^46.
#ifndef LISSOM_WORKLOADS_NPB_RANDOM_H
#define LISSOM_WORKLOADS_NPB_RANDOM_H

#include <stdint.h>

#define NPB_MULTIPLIER 1220703125.0 // 5^13

// Return value mod 2^46. Products wrap modulo 2^64, a multiple of 2^46: low bits are exact.
static inline uint64_t npb_mask(uint64_t value) { return value & ((UINT64_C(1) << 46) - 1); }

// Advance the seed *x. Returns the random number, above 0 and below 1.
static inline double npb_random(double *x, double a) {
    uint64_t next = npb_mask((uint64_t)*x * (uint64_t)a);
    *x = (double)next;
    return *x * 0x1p-46;
}

// Write the next n random numbers to `out`, and advance the seed *x by n steps.
static inline void npb_random_fill(long n, double *x, double a, double *out) {
    uint64_t state = (uint64_t)*x, factor = (uint64_t)a;
    for (long i = 0; i < n; i++) {
        state = npb_mask(state * factor);
        out[i] = (double)state * 0x1p-46;
    }
    *x = (double)state;
}

// Returns a^n mod 2^46: the multiplier that advances a seed by n >= 0 steps at once.
static inline double npb_power(double a, long n) {
    uint64_t power = 1, square = (uint64_t)a;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            power = npb_mask(power * square);
        square = npb_mask(square * square);
    }
    return (double)power;
}

#endif
