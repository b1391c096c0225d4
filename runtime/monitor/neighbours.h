/* SPDX-License-Identifier: MIT
 *
 * Programs that are not under lissom may want the CPUs of the process, too. Notices it, by the time
 * for which threads have waited for their CPUs, and says how many slots there are to be then
 * (cpus/beside.h). Has threads scanned for busy-waiting meanwhile, also if there are no more of
 * them than CPUs: what one waits for may have lost its CPU. By the monitor.
 */
#ifndef LISSOM_NEIGHBOURS_H
#define LISSOM_NEIGHBOURS_H

#include "cpus/beside.h"

#include <stdbool.h>
#include <stdint.h>

/* own_descriptors: it may open files. Otherwise, and with --share=off, nothing is looked at. */
void neighbours_begin(bool own_descriptors);
/* Looks if it is time: 5 us for each slot, 40 at most, every 12 to 50 ms. Opens files. throttled: a
 * CPU quota may stop the process, which looks as if others ran. Post: true: neighbours_slots has
 * changed. */
bool neighbours_look(uint64_t now /* tsc */, const struct beside_share *share, bool throttled);
/* How many slots there are to be, at least 1. */
uint32_t neighbours_slots(const struct beside_share *share);
/* Whether there were neighbours at the last look. */
bool neighbours_any(void);
/* If so, has the threads that run scanned. Returns whether it has. */
bool neighbours_tick(uint64_t now);

#endif
