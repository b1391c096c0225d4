/* SPDX-License-Identifier: MIT
 *
 * Time limits of futex waits. They are kept by the kernel, which then wakes the thread's own kernel
 * thread, or by the monitor (sched/timers.h).
 */
#ifndef LISSOM_FUTEX_DEADLINE_H
#define LISSOM_FUTEX_DEADLINE_H

#include "sched/timers.h"

#include <time.h>

struct deadline {
    struct timespec at;
    bool realtime; /* CLOCK_REALTIME; else CLOCK_MONOTONIC */
    bool by_monitor;
};

/* Read the time limit of futex wait `op` from r, which has one. Sets *d, except by_monitor. Returns
 * 0, -EFAULT or -EINVAL, as futex(2). */
long deadline_read(const struct user_registers *r, int op, struct deadline *d);
/* Set *d to `ns` from now. */
void deadline_after(uint64_t ns, struct deadline *d);
enum timer_clock deadline_clock(const struct deadline *d);
/* Return the time limit in ns of its clock; never 0. */
uint64_t deadline_ns(const struct deadline *d);
/* Set by_monitor for the wait that t is about to begin. If the kernel has to keep the time,
 * migrates t home: t may lose its slot for that, and holds one on return. */
void deadline_settle(struct thread *t, struct deadline *d);

#endif
