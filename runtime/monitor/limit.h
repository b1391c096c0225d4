/* SPDX-License-Identifier: MIT
 *
 * The number of slots: limit.c says what it follows. By the monitor.
 */
#ifndef LISSOM_LIMIT_H
#define LISSOM_LIMIT_H

#include "cpus/beside.h"

#include <stdbool.h>
#include <stdint.h>

/* How many slots there are to be: 1..LISSOM_MAX_SLOTS. option: --cpus, or 0. as_loaded: the main
 * thread's mask may be that of an OpenMP place by now. To be called while there is one thread. */
uint32_t cpus_init(uint32_t option, bool as_loaded);
/* The same as of now. By the monitor, as are all below. */
uint32_t cpus_limit(void);
/* How many of these the process is to have beside others: 1..limit. */
uint32_t cpus_share(uint32_t limit);
/* The input of neighbours_look. n: cpus_share(limit). */
struct beside_share cpus_beside_others(uint32_t n, uint32_t limit);
/* Whether a CPU quota may stop threads that run on all slots. */
bool cpus_may_be_throttled(void);
/* There are to be n slots, at most `limit`: what follows from it for masks is done. */
void cpus_settle(uint32_t n, uint32_t limit);

#endif
