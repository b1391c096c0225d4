/* SPDX-License-Identifier: MIT
 *
 * Time limits of waits, and who keeps them: the kernel, which then wakes the thread's own kernel
 * thread, or the monitor (sched/timers.h).
 */
#ifndef LISSOM_FUTEX_DEADLINE_H
#define LISSOM_FUTEX_DEADLINE_H

#include "sched/timers.h"

#include <time.h>

struct deadline {
    struct timespec at;
    bool realtime; /* of CLOCK_REALTIME; else CLOCK_MONOTONIC */
    bool by_monitor;
};

/* That of a futex wait `op`, as r has it, which is not 0. Post: 0, -EFAULT or -EINVAL, as
 * futex(2); *d, but for by_monitor. */
long deadline_read(const struct user_registers *r, int op, struct deadline *d);
/* `ns` from now. */
void deadline_after(uint64_t ns, struct deadline *d);
enum timer_clock deadline_clock(const struct deadline *d);
/* ns of its clock; not 0. */
uint64_t deadline_ns(const struct deadline *d);
/* Decides by_monitor, for the wait that t is about to begin; if the kernel has to keep the time, t
 * goes home: it may lose its slot for that, and has one again. */
void deadline_settle(struct thread *t, struct deadline *d);

#endif
