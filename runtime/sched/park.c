/* SPDX-License-Identifier: MIT
 *
 * Parking: a thread that waits in a loop of its own (spin/spin.h) gives its slot to another that
 * can run. It joins the slot's waiting list (sched/waiting.h). The protocol is
 * docs/design/slot-protocol.md, park. Unlike a yielding thread, it keeps spinning with the slot if
 * no other can run. Unlike a blocked one, it is in no queue: nobody wakes it, and threads that pick
 * the next one check whether its wait is over.
 *
 * A thread at a spin site checks at each turn whether it should park (slot_wanted). That is a guess
 * and must cost next to nothing: natively a turn takes a few ns.
 */
#include "sched/slots.h"
#include "sched/waiting.h"

enum {
    LOOK_AROUND_NS = 500, /* minimum time between two checks of another slot by a spinning thread */
    /* time after a slot's thread has left its loop until other slots check its parked threads */
    STEAL_AFTER_NS = 10000,
};

/* Return whether the threads of s check its list themselves: its thread is at a spin site all the
 * time, or they take turns. Then leave the list to them: moving a thread to another CPU takes
 * longer, and probing takes cache lines from the threads that need them next. */
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
    /* Rarely: each check takes a cache line from the threads that write it at each turn. */
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

/* Find a thread that can run in the place of t. Returns NULL if there is none, or if t's extra
 * place has to end. Pre: s->lock. */
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
    /* Threads that yielded here meanwhile are in such loops, too. */
    uint32_t sharers = __atomic_load_n(&s->spin_yields, __ATOMIC_RELAXED) - before;
    t->counts_on = waiting_turns(tsc() - now, sharers);
}
