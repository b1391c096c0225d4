/* SPDX-License-Identifier: MIT
 *
 * Choose the run queue for a woken thread: docs/design/slot-protocol.md, make_ready.
 */
#include "sched/hooks.h"
#include "sched/ready.h"
#include "sched/slices.h"
#include "sched/slots.h"

enum {
    IMBALANCE = 2, /* maximum difference between the lengths of run queues */
};

/* Choose a slot for t: the one where it was, unless the run queue there is longer than another's by
 * more than IMBALANCE. If only idle slots took threads of others, each slot would keep its threads.
 * Those on a longer queue would then get less CPU time. Checks one other queue, in turn. */
static struct slot *place(struct thread *t)
{
    static uint32_t turn; /* a guess needs no atomic */
    struct slot *s = t->slot;
    uint32_t n = slot_ready_count(s), slots = slots_open();
    if (n <= IMBALANCE || slots < 2)
        return s;
    uint32_t step = slots == 2 ? 1 : 1 + turn++ % (slots - 1);
    struct slot *other = &sched.slot[(s->index + step) % slots];
    if (n > slot_ready_count(other) + IMBALANCE)
        t->slot = s = other;
    return s;
}

/* Lock t's slot: an open one, which is returned. slots_resize, in the calling thread itself, may
 * not yet have opened all slots below slots_open(). But slot 0 is never closed, so this ends. */
static struct slot *lock_place(struct thread *t)
{
    struct slot *s = place(t);
    for (;;) {
        lock_take(&s->lock);
        if (!s->closed)
            return s;
        lock_drop(&s->lock);
        struct slot *open = &sched.slot[s->index % slots_open()];
        t->slot = s = open != s ? open : &sched.slot[0];
    }
}

/* Publish t on a run queue, and ensure that no slot stays idle beside it. */
void slot_make_ready(struct thread *t)
{
    struct slot *s = lock_place(t);
    if (s->state == SLOT_IDLE) {
        slot_set_busy(s);
        lock_drop(&s->lock);
        carrier_dispatch(t, s);
        monitor_slot_busy();
        return;
    }
    ready_push(s, t);
    if (s->kept_until) /* other slots may take t */
        __atomic_store_n(&s->kept_until, 0, __ATOMIC_RELAXED);
    /* the poller takes it */
    bool taken = s->state == SLOT_POLLING && s->ready_count == 1;
    lock_drop(&s->lock);
    if (!taken)
        slots_look_for_idle(s);
    slices_preempt(s);
}

/* Tried: lock a slot once for all of its threads. With 31 of them the other slot begins later (15%
 * slower); with two at a time it is 5% faster. */
void slots_make_ready(struct thread *list)
{
    while (list) {
        struct thread *t = list;
        list = t->next;
        slot_make_ready(t);
    }
}

void slot_make_ready_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n,
                          uint64_t kept_until)
{
    struct thread *first = NULL;
    lock_take(&s->lock);
    if (s->closed) {
        lock_drop(&s->lock);
        slots_make_ready(head);
        return;
    }
    if (s->state == SLOT_IDLE) {
        slot_set_busy(s);
        first = head;
        head = head->next;
        n--;
    }
    if (n)
        ready_push_list(s, head, tail, n);
    /* the poller takes one */
    bool taken = s->state == SLOT_POLLING && s->ready_count == n;
    __atomic_store_n(&s->kept_until, kept_until, __ATOMIC_RELAXED);
    lock_drop(&s->lock);
    if (first) {
        first->next = NULL;
        carrier_dispatch(first, s);
        monitor_slot_busy();
    }
    if (kept_until) { /* the monitor runs them if nobody else does */
        monitor_kick();
        return;
    }
    for (uint32_t i = taken; i < n; i++) { /* minus the one that the poller takes */
        slots_look_for_idle(s);
        if (!__atomic_load_n(&sched.idle_count, __ATOMIC_RELAXED) || !slot_ready_count(s))
            break;
    }
    slices_preempt(s);
}
