/* SPDX-License-Identifier: MIT
 *
 * What a slot does that has nothing to run, before it is given up: docs/polling.md.
 */
#include "events/events.h"
#include "sched/contention.h"
#include "sched/slots.h"

enum {
    POLL_US = 50,          /* how long a slot with nothing to run looks for work before it is given up */
    OPENMP_POLL_US = 3000, /* the same for a wait of OpenMP, which would have spun for so long itself (libgomp) */
};

/* How long t may poll. Only a program that has no more threads than CPUs would have spun for long natively. */
static uint64_t poll_time(const struct thread *t, struct slot *s, uint64_t now)
{
    if (contention_on_cpu(s) || contended(now) || events_watched())
        return 0;
    bool openmp = sched.poll_for_openmp && t->openmp && t->site->object_kind != OBJECT_OPENMP; /* else: polled in place */
    return (openmp ? OPENMP_POLL_US : POLL_US) * sched.tsc_per_us;
}

struct thread *slot_poll(struct thread *t, struct slot *s)
{
    struct thread *u = NULL;
    uint64_t now = tsc(), until = now + poll_time(t, s, now), last;
    lock_take(&s->lock);
    u = slot_next(s);
    if (!u)
        __atomic_store_n(&s->state, SLOT_POLLING, __ATOMIC_RELAXED);
    lock_drop(&s->lock);
    if (u)
        return u;
    while (!u && now < until && __atomic_load_n(&t->attach, __ATOMIC_RELAXED) == ATTACHED && !t->attention && !slot_is_closed(s)) {
        for (int i = 0; i < 8 && slot_lists_nothing(s); i++)
            cpu_relax();
        u = slot_pop_with_events(s);
        if (!u)
            u = slot_steal(s);
        last = now;
        now = tsc();
        if (contention_stood_still(last, now))
            break;
    }
    lock_take(&s->lock);
    __atomic_store_n(&s->state, SLOT_BUSY, __ATOMIC_RELAXED);
    bool others = u && s->ready_count; /* who pushed it left it to the poller to find it */
    lock_drop(&s->lock);
    if (others)
        slots_look_for_idle(s);
    return u;
}

/* The wait is not queued meanwhile: natively the runtime would not have called yet. */
bool slot_poll_in_place(struct thread *t, const uint32_t *word, uint32_t value)
{
    struct slot *s = t->slot;
    uint64_t now = tsc(), until = now + OPENMP_POLL_US * sched.tsc_per_us, last;
    uint32_t is;
    if (!sched.poll_for_openmp || t->site->object_kind != OBJECT_OPENMP || contended(now))
        return false;
    for (uint32_t i = 0; now < until && !t->attention && !slot_is_closed(s); i++) {
        if (lissom_guarded_load(word, &is) || is != value)
            return true;
        if (!slot_lists_nothing(s) || (i % 16 == 0 && (slots_anything_ready() || contention_on_cpu(s))))
            return false;
        cpu_relax();
        last = now;
        now = tsc();
        if (contention_stood_still(last, now))
            return false;
    }
    return false;
}
