/* SPDX-License-Identifier: MIT
 *
 * What the monitor does with slots that do not schedule by themselves: docs/slots.md, end_slice and
 * step_back.
 */
#ifndef LISSOM_SLICES_H
#define LISSOM_SLICES_H

#include "sched/thread.h"

enum { SLICE_US = 3000 }; /* CFS's */

/* Threads are ready on s, or run on it beside the one that has it. Writes s->monitor_*, but
 * monitor_seen, which the caller writes afterwards. */
void slices_look(struct slot *s, uint64_t now /* tsc */);
/* Who runs on s is looked at for busy-waiting. */
void slices_sample(const struct slot *s);

#endif
