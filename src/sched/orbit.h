/* SPDX-License-Identifier: MIT
 *
 * Whether a thread is seen on an orbit: a row of states that ends where it began. The interpreter
 * of runtime/spin finds the orbit; it may begin anywhere behind the sample, so this file also asks
 * whether the sample lies on it.
 */
#ifndef LISSOM_SCHED_ORBIT_H
#define LISSOM_SCHED_ORBIT_H

#include "spin/interpret.h"

/* As enum scx_verdict of bpf/scx_lissom.h. */
enum orbit { ORBIT_UNKNOWN, ORBIT_SPINS, ORBIT_WORKS };

/* Of the process that is looked at. Each copies `bytes` (1..15) from an address below 2^47. Post:
 * 0, or a negative number. */
struct orbit_memory {
    /* a snapshot: the same bytes whenever it is asked for the same address */
    long (*load)(uintptr_t address, void *to, unsigned bytes);
    long (*fetch)(uintptr_t address, void *to, unsigned bytes); /* code */
    long (*again)(uintptr_t address, void *to, unsigned bytes); /* as it is now */
};

struct orbit_attempt {
    uint32_t steps; /* instructions that were interpreted, 2,000 and a few turns at most */
    bool uses_fs;   /* one of them reads through the fs segment */
    /* ORBIT_SPINS: the loop's first instruction in the outermost function of a turn: the same
     * whatever instruction was sampled */
    uint64_t head;
};

enum { ORBIT_SCRATCH = 72 * 1024 }; /* bytes, aligned to 64, which need not be initialised */

/* One attempt. registers: as in struct scx_candidate. fs_base: 0: not known; then no load may go
 * through it. Post: *a is filled in. */
enum orbit orbit_judge(const struct orbit_memory *memory, const uint64_t registers[18],
                       uint64_t fs_base, void *scratch, struct orbit_attempt *a);

#endif
