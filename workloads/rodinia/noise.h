/* SPDX-License-Identifier: MIT */
// Random numbers by position in a sequence: the same for any number of threads.
#ifndef LISSOM_WORKLOADS_RODINIA_NOISE_H
#define LISSOM_WORKLOADS_RODINIA_NOISE_H

#include <math.h>
#include <stdint.h>

// Return a uniform number in (0, 1) for `sequence` and `index` (splitmix64's output function).
static inline double noise_uniform(uint64_t sequence, uint64_t index) {
    uint64_t x = (sequence << 40) + index * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return ((double)((x ^ x >> 31) >> 12) + 0.5) * 0x1p-52;
}

// Return a normal number, mean 0, variance 1 (Box and Muller). Uses 2 * index and the next.
static inline double noise_normal(uint64_t sequence, uint64_t index) {
    double radius = sqrt(-2 * log(noise_uniform(sequence, 2 * index)));
    return radius * cos(2 * M_PI * noise_uniform(sequence, 2 * index + 1));
}

// Round to a camera's grey level: 0 to 255.
static inline uint8_t noise_pixel(double level) {
    return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level + 0.5);
}

#endif
