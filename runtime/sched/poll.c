/* SPDX-License-Identifier: MIT
 *
 * Polling by a slot that has nothing to run, before it is given up: docs/design/idle-polling.md.
 */
#include "policy/haltpoll.h"
#include "sched/contention.h"
#include "sched/hooks.h"
#include "sched/slots.h"

enum {
    MAX_NS = 200000, /* longest window, as in KVM */
    /* longest window for a wait of OpenMP, which would have spun that long itself (libgomp) */
    OPENMP_MAX_NS = 3000000,
};

static uint64_t tsc_of_ns(uint64_t ns) { return ns * sched.tsc_per_us / 1000; }

/* Return the longest window for a wait of t. Natively, only a program with no more threads than
 * CPUs would have spun for long. */
static uint32_t max_window(const struct thread *t)
{
    return sched.poll_for_openmp && t->openmp ? OPENMP_MAX_NS : MAX_NS;
}

/* The wait of s that began at s->idle_since is over: adapt the window. */
static void learn(struct slot *s, uint64_t now)
{
    s->poll_ns =
        haltpoll_next(s->poll_ns, (now - s->idle_since) * 1000 / sched.tsc_per_us, s->poll_max_ns);
    s->idle_since = 0;
}

void poll_ended(struct slot *s)
{
    if (s->idle_since)
        learn(s, tsc());
}

/* Return when a poll of t on s that begins now has to end; 0: do not poll. The poll of a wait with
 * a deadline is bounded, since nothing else ends it. */
static uint64_t poll_until(struct thread *t, struct slot *s, uint64_t now)
{
    if (sched.idle_policy == IDLE_SLEEP || contention_on_cpu(s) || contended(now) ||
        events_watched())
        return 0;
    if (sched.idle_policy == IDLE_POLL)
        return t->deadline ? now + tsc_of_ns(MAX_NS) : UINT64_MAX;
    s->poll_max_ns = max_window(t);
    s->idle_since = t->polled_since ? t->polled_since : now;
    t->polled_since = 0;
    return s->idle_since + tsc_of_ns(s->poll_ns);
}

struct thread *slot_poll(struct thread *t, struct slot *s)
{
    struct thread *u = NULL;
    s->idle_since = 0;
    uint64_t now = tsc(), until = poll_until(t, s, now), last;
    lock_take(&s->lock);
    u = slot_next(s);
    if (!u && now < until)
        __atomic_store_n(&s->state, SLOT_POLLING, __ATOMIC_RELAXED);
    lock_drop(&s->lock);
    if (u || now >= until)
        return u;
    while (!u && now < until && __atomic_load_n(&t->attach, __ATOMIC_RELAXED) == ATTACHED &&
           !t->pending_work && !slot_is_closed(s)) {
        for (int i = 0; i < 8 && slot_lists_nothing(s); i++)
            cpu_relax();
        u = carrier_is_reserved(t) ? carrier_take_reserved(t) : slot_pop_with_events(s);
        if (!u)
            u = slot_steal(s);
        last = now;
        now = tsc();
        if (contention_stood_still(last, now)) {
            s->idle_since = 0; /* time taken by other programs is no wait */
            break;
        }
    }
    lock_take(&s->lock);
    __atomic_store_n(&s->state, SLOT_BUSY, __ATOMIC_RELAXED);
    bool others = u && s->ready_count; /* the waker left it to the poller to find the first */
    lock_drop(&s->lock);
    if (others)
        slots_look_for_idle(s);
    if (u && s->idle_since)
        learn(s, now);
    return u;
}

/* The thread is not queued meanwhile: natively the runtime would not have called yet. */
bool slot_poll_in_place(struct thread *t, const uint32_t *word, uint32_t value)
{
    struct slot *s = t->slot;
    uint32_t is;
    t->polled_since = 0;
    if (!sched.poll_for_openmp || t->site->object_kind != OBJECT_OPENMP ||
        sched.idle_policy == IDLE_SLEEP || !slot_lists_nothing(s))
        return false;
    uint64_t now = tsc(), last;
    if (contended(now))
        return false;
    uint64_t begun = now,
             until = sched.idle_policy == IDLE_POLL ? UINT64_MAX : now + tsc_of_ns(s->poll_ns);
    for (uint32_t i = 0;
         now < until && !t->pending_work && !slot_is_closed(s) && !carrier_is_reserved(t); i++) {
        if (lissom_guarded_load(word, &is) || is != value)
            return true;
        if (!slot_lists_nothing(s) ||
            (i % 16 == 0 && (slots_anything_to_take() || contention_on_cpu(s))))
            return false;
        cpu_relax();
        last = now;
        now = tsc();
        if (contention_stood_still(last, now))
            return false;
    }
    t->polled_since = begun;
    return false;
}
