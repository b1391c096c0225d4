/* SPDX-License-Identifier: MIT
 *
 * Change the number of slots at run time: docs/design/slot-protocol.md, open and close. Slots are
 * numbered; those below sched.slots are open.
 */
#include "sched/ready.h"
#include "sched/signals.h"
#include "sched/slots.h"
#include "sched/waiting.h"

/* Take all threads off the lists of s. Returns them linked by next. Pre: s->lock. */
static struct thread *take_all(struct slot *s)
{
    struct thread *list = ready_take_all(s);
    for (struct thread *t; (t = waiting_take_any(s)) != NULL;) {
        t->next = list;
        list = t;
    }
    return list;
}

/* Nobody comes to s any more: only idle slots are claimed, and a thread that pushes checks `closed`
 * under the lock. The threads of s go to other slots. The runner leaves at its next scheduling
 * point; the monitor preempts it. */
static void close_slot(struct slot *s)
{
    lock_take(&s->lock);
    __atomic_store_n(&s->closed, true, __ATOMIC_RELAXED);
    if (s->state == SLOT_IDLE) {
        __atomic_store_n(&s->state, SLOT_CLOSED, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&sched.idle_count, 1, __ATOMIC_SEQ_CST);
    }
    struct thread *list = take_all(s);
    lock_drop(&s->lock);
    slots_make_ready(list);
}

/* Open s. It is idle then, or runs one of the ready threads, or the threads that had not left it
 * yet. */
static void open_slot(struct slot *s)
{
    lock_take(&s->lock);
    bool ours = s->state == SLOT_CLOSED;
    __atomic_store_n(&s->closed, false, __ATOMIC_RELAXED);
    if (ours)
        __atomic_store_n(&s->state, SLOT_BUSY, __ATOMIC_RELAXED);
    lock_drop(&s->lock);
    if (ours)
        slot_pass_on(s);
}

void slots_resize(uint32_t n)
{
    uint32_t now = sched.slots;
    for (uint32_t i = sched.slots_made; i < n; i++)
        sched.slot[i] =
            (struct slot){.index = i, .neighbour = i, .state = SLOT_CLOSED, .closed = true};
    if (n > sched.slots_made)
        __atomic_store_n(&sched.slots_made, n, __ATOMIC_RELAXED);
    __atomic_store_n(&sched.slots, n, __ATOMIC_SEQ_CST);
    for (uint32_t i = n; i < now; i++)
        close_slot(&sched.slot[i]);
    for (uint32_t i = now; i < n; i++)
        open_slot(&sched.slot[i]);
}

bool slots_vacate(void)
{
    bool any = false;
    for (uint32_t i = sched.slots; i < sched.slots_made; i++) {
        struct slot *s = &sched.slot[i];
        if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_CLOSED)
            continue;
        any = true;
        if (!sched.traced) /* the reason is in monitor/scan.c */
            threads_on_slot(s, signals_scan);
    }
    return any;
}

uint32_t slots_demand(uint32_t *running)
{
    uint32_t busy = 0, ready = 0;
    for (uint32_t i = 0; i < sched.slots_made; i++) {
        const struct slot *s = &sched.slot[i];
        busy += __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_BUSY;
        ready += __atomic_load_n(&s->ready_count, __ATOMIC_RELAXED);
    }
    if (running)
        *running = busy;
    return busy + ready;
}
