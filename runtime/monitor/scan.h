/* SPDX-License-Identifier: MIT
 *
 * Preempt threads whose slice is over: docs/design/slots.md, Slices, Retaking a slot.
 */
#ifndef LISSOM_SCAN_H
#define LISSOM_SCAN_H

#include "sched/thread.h"

/* Scan s, on which threads are ready, or extra runners run. Writes s->monitor_*, except
 * monitor_seen, which the caller writes afterwards. now: tsc. Monitor only. */
void scan_slot(struct slot *s, uint64_t now);
/* Scan the thread that runs on s for busy-waiting. */
void scan_runner(const struct slot *s);

#endif
