/* SPDX-License-Identifier: MIT
 *
 * Preempt threads whose slice is over: docs/slots.md, end_slice, step_back. By the monitor.
 */
#ifndef LISSOM_SCAN_H
#define LISSOM_SCAN_H

#include "sched/thread.h"

/* Threads are ready on s, or run on it beside the one that has it. Writes s->monitor_*, but
 * monitor_seen, which the caller writes afterwards. now: tsc. */
void scan_slot(struct slot *s, uint64_t now);
/* Has the thread that runs on s examined for busy-waiting. */
void scan_runner(const struct slot *s);

#endif
