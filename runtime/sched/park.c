/* SPDX-License-Identifier: MIT
 *
 * Parking: a thread that waits in a loop of its own (spin/spin.h) gives its slot to one that can do
 * something, and goes on the slot's waiting list (sched/waiting.h). docs/slots.md, park, is the
 * protocol: unlike a thread that yields it goes on spinning with the slot if there is no other, and
 * unlike one that blocks it is in no queue: nobody wakes it, and whoever picks the next thread
 * looks whether its wait is over.
 *
 * A thread that comes to a spin site asks at each turn whether it should park (slot_wanted). That
 * is a guess and must cost next to nothing: natively a turn takes a few ns.
 */
#include "sched/slots.h"
#include "sched/waiting.h"

enum {
    LOOK_AROUND_NS = 500, /* between two looks of a spinning thread at another slot */
    /* that a slot's thread has left its loop, before another slot looks after its parked ones */
    STEAL_AFTER_NS = 10000,
};

/* Its thread is at a spin site all the time, or its threads take turns, and comes first: moving a
 * thread to another CPU takes longer, and probing at its list takes the cache lines from who needs
 * them next. */
static bool looks_itself(const struct slot *s, uint64_t now)
{
    return now - __atomic_load_n(&s->looked_at, __ATOMIC_RELAXED) <
           STEAL_AFTER_NS * sched.tsc_per_us / 1000;
}

static void looked(struct slot *s, uint64_t now)
{
    __atomic_store_n(&s->looked_at, now, __ATOMIC_RELAXED);
}

bool slot_wanted(struct thread *t, uint64_t now)
{
    struct slot *own = t->slot;
    if (slot_is_closed(own) || __atomic_load_n(&own->overcommit, __ATOMIC_RELAXED) ||
        __atomic_load_n(&t->carrier->reserved, __ATOMIC_RELAXED))
        return true;
    if (slot_ready_count(own) || waiting_any_over(own, now, true))
        return true;
    /* Seldom: each look takes a cache line from who writes there at each turn. */
    if (now - own->looked_at < LOOK_AROUND_NS * sched.tsc_per_us / 1000 || slots_open() < 2)
        return false;
    looked(own, now);
    uint32_t slots = slots_open();
    struct slot *s =
        &sched.slot[(own->index + 1 + t->looks++ % (slots > 1 ? slots - 1 : 1)) % slots];
    return !looks_itself(s, now) && (slot_ready_count(s) || waiting_any_over(s, now, true));
}

/* Pre: s->lock. */
static void push(struct slot *s, struct thread *t, uint64_t now)
{
    waiting_push(s, t, now);
    s->schedules++;
    looked(s, now);
}

/* Who can run in the place of t. Pre: s->lock. Post: NULL: nobody, or t has an extra place, which
 * is to end. */
static struct thread *successor(struct slot *s, bool extra)
{
    return extra && !slot_hands_on(s) ? NULL : slot_next(s);
}

bool slot_park(struct thread *t, uint64_t now)
{
    struct slot *s = t->slot;
    struct thread *u = carrier_take_reserved(t);
    lock_take(&s->lock);
    bool extra = !u && !s->closed && s->overcommit > 0;
    if (!u && !s->closed)
        u = successor(s, extra);
    if (extra && !u)
        s->overcommit--;
    if (!u && !extra && !s->closed) {
        lock_drop(&s->lock);
        u = slot_steal(s);
        if (!u)
            return false;
        lock_take(&s->lock);
    }
    count_on(s, parks, 1);
    if (s->closed) {
        slot_leave_closed(t, s, u);
        return true;
    }
    push(s, t, now);
    lock_drop(&s->lock);
    slot_hand_over(t, s, u);
    return true;
}

void slot_yield_spinning(struct thread *t, uint64_t now)
{
    struct slot *s = t->slot;
    uint32_t before = __atomic_fetch_add(&s->spin_yields, 1, __ATOMIC_RELAXED);
    slot_yield(t);
    /* Threads that have yielded here meanwhile are in such loops, too. */
    uint32_t sharers = __atomic_load_n(&s->spin_yields, __ATOMIC_RELAXED) - before;
    t->counts_on = waiting_turns(tsc() - now, sharers);
}
