/* SPDX-License-Identifier: MIT
 *
 * The monitor, for the layers above the core. The core has sched/hooks.h.
 */
#ifndef LISSOM_MONITOR_H
#define LISSOM_MONITOR_H

#include "sched/hooks.h"

/* The caller is about to call mq_notify(2). Returns once the monitor does nothing that could undo
 * it. */
void monitor_before_mq_notify(void);
void monitor_after_fork(void);
/* End the monitor, and wait until it is gone. Not by the monitor. */
void monitor_end(void);

#endif
