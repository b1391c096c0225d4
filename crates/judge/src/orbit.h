/* SPDX-License-Identifier: MIT
 *
 * Judge whether a thread was sampled on an orbit: a sequence of states that ends where it began.
 * The interpreter of runtime/spin finds an orbit that may begin after the sample. So this file also
 * checks that the sample lies on the orbit.
 */
#ifndef LISSOM_ORBIT_H
#define LISSOM_ORBIT_H

#include "spin/interpret.h"

/* The values of enum scx_verdict in bpf/scx_lissom.h. */
enum orbit { ORBIT_UNKNOWN, ORBIT_SPINS, ORBIT_WORKS };

/* The memory of the judged process. Each function copies `bytes` (1 to 15) from an address below
 * 2^47. It returns 0, or a negative number on failure. */
struct orbit_memory {
    /* a snapshot: the same address always has the same bytes */
    long (*load)(uintptr_t address, void *to, unsigned bytes);
    long (*fetch)(uintptr_t address, void *to, unsigned bytes); /* code */
    long (*again)(uintptr_t address, void *to, unsigned bytes); /* current contents */
};

struct orbit_attempt {
    uint32_t steps; /* instructions until the verdict: 2,000, in searches up to 8 times as many */
    bool uses_fs;   /* an instruction addresses memory through the fs segment */
    /* ORBIT_SPINS: lowest instruction of the loop in the outermost function of an iteration; the
     * same for every sampled instruction */
    uint64_t head;
};

enum { ORBIT_SCRATCH = 72 * 1024 }; /* bytes, aligned to 64; need not be initialised */

/* Make one attempt, and fill in *a. registers: as in struct scx_candidate. fs_base: 0 if unknown;
 * loads through fs then fail. scratch: ORBIT_SCRATCH bytes. */
enum orbit orbit_judge(const struct orbit_memory *memory, const uint64_t registers[18],
                       uint64_t fs_base, void *scratch, struct orbit_attempt *a);

#endif
