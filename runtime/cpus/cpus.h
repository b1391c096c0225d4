/* SPDX-License-Identifier: MIT
 *
 * Affinity masks, and the two masks of the process that the runtime has not changed.
 */
#ifndef LISSOM_CPUS_H
#define LISSOM_CPUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_MASK_WORDS = 128 }; /* 8192 CPUs, the most that a kernel supports */

struct cpu_mask {
    uint64_t word[CPU_MASK_WORDS];
    uint32_t bytes; /* size of the kernel's mask */
};

static inline uint32_t cpus_count(const struct cpu_mask *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->bytes / 8; i++)
        n += (uint32_t)__builtin_popcountll(m->word[i]);
    return n;
}

/* --- at_load.c -------------------------------------------------------------------------------- */
/* Set *m to the mask of a thread; bytes 0: unreadable. tid 0: the calling thread. */
void cpus_mask_of(struct cpu_mask *m, long tid);
void cpus_loaded(void);                    /* read the mask; by the constructor */
const struct cpu_mask *cpus_at_load(void); /* bytes 0: unreadable */

/* --- sentinel.c: by the monitor --------------------------------------------------------------- */

/* Start the sentinel: a kernel thread with the caller's mask, which the runtime never sets. Returns
 * false if it cannot be created. */
bool cpus_sentinel_begins(void);
void cpus_sentinel_ends(void);
long cpus_sentinel(void); /* tid; 0: none */
void cpus_sentinel_after_fork(void);

#endif
