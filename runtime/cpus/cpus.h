/* SPDX-License-Identifier: MIT
 *
 * Affinity masks, and the masks of the process that no thread of ours has changed.
 */
#ifndef LISSOM_CPUS_H
#define LISSOM_CPUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_MASK_WORDS = 128 }; /* 8192 CPUs, the largest that a kernel can be built for */

struct cpu_mask {
    uint64_t word[CPU_MASK_WORDS];
    uint32_t bytes; /* as many as the kernel has */
};

static inline uint32_t cpus_count(const struct cpu_mask *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->bytes / 8; i++)
        n += (uint32_t)__builtin_popcountll(m->word[i]);
    return n;
}

/* --- at_load.c -------------------------------------------------------------------------------- */
void cpus_loaded(void);                    /* by the constructor */
const struct cpu_mask *cpus_at_load(void); /* bytes 0: it cannot be read */

/* --- sentinel.c: by the monitor --------------------------------------------------------------- */

/* A thread whose mask nobody of us sets: the caller's at this moment, and what becomes of it. Post:
 * false: there is none. */
bool cpus_sentinel_begins(void);
void cpus_sentinel_ends(void);
long cpus_sentinel(void); /* its id; 0: none */
void cpus_sentinel_after_fork(void);

#endif
