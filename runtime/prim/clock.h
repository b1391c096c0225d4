/* SPDX-License-Identifier: MIT
 *
 * Clocks, and the rate of the time stamp counter.
 */
#ifndef LISSOM_CLOCK_H
#define LISSOM_CLOCK_H

#include <stdint.h>

/* Return the time stamp counter. */
static inline uint64_t tsc(void)
{
    uint32_t lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((uint64_t)hi << 32) | lo;
}

/* Return the time of a clock of clock_gettime(2) in ns; 0 if there is no such clock. */
uint64_t clock_ns(int clock);

/* Return the CPU-time clock of a thread of this process, or of any process:
 * pthread_getcpuclockid(3), clock_getcpuclockid(3). */
static inline int clock_of_thread(int32_t tid) { return (int)(~(uint32_t)tid << 3 | 6); }
static inline int clock_of_process(int32_t pid) { return (int)(~(uint32_t)pid << 3 | 2); }

/* CLOCK_MONOTONIC in ns, read between tsc and tsc + width. The thread may be interrupted anywhere,
 * so width has no bound. */
struct clock_reading {
    uint64_t ns, tsc, width;
};
void clock_read(struct clock_reading *reading);

/* Return the tsc ticks per microsecond, within 1 %. Takes two readings at least 100 us apart:
 * further apart if none is narrow enough for that precision. */
uint64_t clock_tsc_per_us(void (*read)(struct clock_reading *));

#endif
