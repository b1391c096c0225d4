/* SPDX-License-Identifier: MIT
 *
 * Clocks, and how fast the time stamp counter goes.
 */
#ifndef LISSOM_CLOCK_H
#define LISSOM_CLOCK_H

#include <stdint.h>

/* The time stamp counter. */
static inline uint64_t tsc(void)
{
    uint32_t lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((uint64_t)hi << 32) | lo;
}

/* Ns of a clock of clock_gettime(2). Post: 0: there is none. */
uint64_t clock_ns(int clock);

/* CPU time of a thread of this process, and of any process: pthread_getcpuclockid(3),
 * clock_getcpuclockid(3). */
static inline int clock_of_thread(int32_t tid) { return (int)(~(uint32_t)tid << 3 | 6); }
static inline int clock_of_process(int32_t pid) { return (int)(~(uint32_t)pid << 3 | 2); }

/* The same moment on both: somewhere from tsc to tsc + width. The thread may be interrupted
 * anywhere, so width may be anything. */
struct clock_reading {
    uint64_t ns, tsc, width;
};
void clock_read(struct clock_reading *reading);

/* Ticks in a microsecond, within 1%, by readings 100 us apart: further, if none is narrow enough to
 * be as exact. */
uint64_t clock_tsc_per_us(void (*read)(struct clock_reading *));

#endif
