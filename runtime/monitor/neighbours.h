/* SPDX-License-Identifier: MIT
 *
 * Programs that are not under lissom, and want the CPUs of the process, too. They are detected by
 * the time for which threads have waited for their CPUs. cpus/beside.h says how many slots there
 * should be then. Meanwhile threads are scanned for busy-waiting, even if there are no more threads
 * than CPUs: the thread that one waits for may have lost its CPU. Monitor only.
 */
#ifndef LISSOM_NEIGHBOURS_H
#define LISSOM_NEIGHBOURS_H

#include "cpus/beside.h"

#include <stdbool.h>
#include <stdint.h>

/* Begin anew. own_descriptors: the monitor may open files. If false, or with --share=off, nothing
 * is checked. */
void neighbours_begin(bool own_descriptors);
/* Check for neighbours if it is time: every 12 to 50 ms; 5 us for each slot, at most 40. Opens
 * files. throttled: a CPU quota may stop the process, which looks as if others ran. Returns whether
 * neighbours_slots has changed. */
bool neighbours_look(uint64_t now /* tsc */, const struct beside_share *share, bool throttled);
/* Returns how many slots there should be, at least 1. */
uint32_t neighbours_slots(const struct beside_share *share);
/* Returns whether there were neighbours at the last check. */
bool neighbours_any(void);
/* Scan the running threads, if there were neighbours at the last check. Returns whether scans are
 * needed. */
bool neighbours_tick(uint64_t now);

#endif
