/* SPDX-License-Identifier: MIT
 *
 * Parking: a thread that waits in a loop of its own (spin/spin.h) gives its slot to one that can do something, and goes on
 * the slot's waiting list (sched/waiting.h). docs/slots.md, park, is the protocol: unlike a thread that yields it goes on
 * spinning with the slot if there is no other, and unlike one that blocks it is in no queue: nobody wakes it, and whoever
 * picks the next thread looks whether its wait is over.
 *
 * A thread that comes to a spin site asks at each turn whether it should park (slot_wanted). That is a guess and must cost next
 * to nothing: natively a turn takes a few ns.
 */
#include "sched/slots.h"
#include "sched/waiting.h"

enum {
    LOOK_AROUND_NS = 500, /* between two looks of a spinning thread at another slot */
    STEAL_AFTER_NS = 10000, /* that a slot's thread has left its loop, before another slot looks after its parked ones */
};

/* Its thread is at a spin site all the time, or its threads take turns, and comes first: moving a thread to another CPU takes
 * longer, and looking at its list takes the cache lines from who needs them next. */
static bool looks_itself(const struct slot *s, uint64_t now)
{
    return now - __atomic_load_n(&s->looked_at, __ATOMIC_RELAXED) < STEAL_AFTER_NS * sched.tsc_per_us / 1000;
}

static void looked(struct slot *s, uint64_t now) { __atomic_store_n(&s->looked_at, now, __ATOMIC_RELAXED); }

bool slot_wanted(struct thread *t, uint64_t now)
{
    struct slot *own = t->slot;
    if (__atomic_load_n(&own->overcommit, __ATOMIC_RELAXED) || __atomic_load_n(&t->carrier->reserved, __ATOMIC_RELAXED))
        return true;
    if (slot_ready_count(own) || waiting_any_over(own, now, true))
        return true;
    /* Seldom: each look takes a cache line from who writes there at each turn. */
    if (now - own->looked_at < LOOK_AROUND_NS * sched.tsc_per_us / 1000 || sched.slots < 2)
        return false;
    looked(own, now);
    struct slot *s = &sched.slot[(own->index + 1 + t->looks++ % (sched.slots - 1)) % sched.slots];
    return !looks_itself(s, now) && (slot_ready_count(s) || waiting_any_over(s, now, true));
}

/* Pre: s->lock. */
static void push(struct slot *s, struct thread *t, uint64_t now)
{
    waiting_push(s, t, now);
    s->schedules++;
    looked(s, now);
}

/* Onto the waiting list of s, if another can run instead, *next (NULL: t had an extra place, which has ended). */
static bool push_for_next(struct slot *s, struct thread *t, uint64_t now, struct thread **next)
{
    struct thread *u = carrier_take_reserved(t);
    lock_take(&s->lock);
    bool extra = !u && s->overcommit > 0;
    if (!u && (!extra || slot_hands_on(s)))
        u = slot_next(s);
    if (extra && !u)
        s->overcommit--;
    if (u || extra)
        push(s, t, now);
    lock_drop(&s->lock);
    *next = u;
    return u || extra;
}

bool slot_park(struct thread *t, uint64_t now)
{
    struct slot *s = t->slot;
    struct thread *u;
    if (!push_for_next(s, t, now, &u)) {
        u = slot_steal(s);
        if (!u)
            return false;
        lock_take(&s->lock);
        push(s, t, now);
        lock_drop(&s->lock);
    }
    count_on(s, parks, 1);
    slot_hand_over(t, s, u);
    return true;
}
