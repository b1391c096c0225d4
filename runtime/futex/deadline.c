/* SPDX-License-Identifier: MIT */
#include "futex/deadline.h"
#include "sched/user.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>

enum { SECOND = 1000000000 };

static void from_now(struct timespec *t)
{
    struct timespec now;
    prim_syscall3(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0);
    if (__builtin_add_overflow(t->tv_sec, now.tv_sec, &t->tv_sec))
        t->tv_sec = LONG_MAX - 1;
    t->tv_nsec += now.tv_nsec;
    if (t->tv_nsec >= SECOND) {
        t->tv_nsec -= SECOND;
        t->tv_sec++;
    }
}

long deadline_read(const struct user_registers *r, int op, struct deadline *d)
{
    uint32_t word[sizeof d->at / sizeof(uint32_t)];
    for (unsigned i = 0; i < sizeof word / sizeof *word; i++)
        if (lissom_guarded_load((const uint32_t *)r->r10 + i, &word[i]))
            return -EFAULT;
    __builtin_memcpy(&d->at, word, sizeof d->at);
    if (d->at.tv_sec < 0 || d->at.tv_nsec < 0 || d->at.tv_nsec >= SECOND)
        return -EINVAL;
    d->realtime = op & FUTEX_CLOCK_REALTIME;
    if ((op & FUTEX_CMD_MASK) == FUTEX_WAIT) { /* relative */
        from_now(&d->at);
        d->realtime = false;
    }
    return 0;
}

void deadline_after(uint64_t ns, struct deadline *d)
{
    *d = (struct deadline){.at = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)}};
    from_now(&d->at);
}

enum timer_clock deadline_clock(const struct deadline *d)
{
    return d->realtime ? TIMER_REALTIME : TIMER_MONOTONIC;
}

uint64_t deadline_ns(const struct deadline *d)
{
    uint64_t ns;
    if (!d->at.tv_sec && !d->at.tv_nsec)
        return 1; /* 0 means no timer (thread.h) */
    return __builtin_mul_overflow((uint64_t)d->at.tv_sec, (uint64_t)SECOND, &ns) ||
                   __builtin_add_overflow(ns, (uint64_t)d->at.tv_nsec, &ns)
               ? TIMERS_FOR_EVER - 1
               : ns;
}

void deadline_settle(struct thread *t, struct deadline *d)
{
    bool watched = timers_watched(deadline_clock(d), deadline_ns(d));
    thread_learn(t, !watched);
    d->by_monitor = watched && !thread_stays(t);
    if (!d->by_monitor)
        carrier_migrate_home(t);
}
