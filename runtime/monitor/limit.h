/* SPDX-License-Identifier: MIT
 *
 * The number of slots; limit.c says what it follows. Monitor only, except cpus_init.
 */
#ifndef LISSOM_LIMIT_H
#define LISSOM_LIMIT_H

#include "cpus/beside.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the number of slots to begin with: 1 to LISSOM_MAX_SLOTS. option: --cpus, or 0.
 * as_loaded: the main thread's mask may be that of an OpenMP place by now, so use the one at load.
 * Pre: there is one thread. */
uint32_t cpus_init(uint32_t option, bool as_loaded);
/* Returns the number of slots that mask, quota and --cpus allow now: 1 to LISSOM_MAX_SLOTS. */
uint32_t cpus_limit(void);
/* Returns the last result of cpus_limit or cpus_init. whole: with the quota rounded down, but at
 * least 1. Any thread may call this. */
uint32_t cpus_limit_last(bool whole);
/* Returns how many of `limit` slots the process should have beside others: 1 to limit. */
uint32_t cpus_share(uint32_t limit);
/* Returns the input of neighbours_look. n: cpus_share(limit). */
struct beside_share cpus_beside_others(uint32_t n, uint32_t limit);
/* Returns whether a CPU quota may stop threads that run on all slots. */
bool cpus_may_be_throttled(void);
/* Adapt the threads' masks to n slots, of the `limit` that would be allowed. */
void cpus_settle(uint32_t n, uint32_t limit);

#endif
