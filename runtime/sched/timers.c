/* SPDX-License-Identifier: MIT
 *
 * Timers: lists in no order, in shards, each with a lock. Most are disarmed long before they are
 * due, so arming and disarming are what has to be cheap; a list is only gone through when the first
 * of all may be due.
 */
#include "sched/timers.h"

#include <time.h>

enum { SHARDS = 16, WAKES_FOR_NOTHING = 0 };

static struct shard {
    struct lock lock;
    struct thread *head;
} __attribute__((aligned(64))) shards[SHARDS];

/* No timer is due before. Too early after the one that it was taken from has been disarmed. */
static uint64_t earliest = TIMERS_FOR_EVER;
/* Until when the monitor may sleep whatever is armed from now on: it looks then at the latest. */
static uint64_t watched_until = TIMERS_FOR_EVER;
static bool in_use;

bool timers_in_use(void) { return __atomic_load_n(&in_use, __ATOMIC_RELAXED); }

bool timers_any(void) { return __atomic_load_n(&earliest, __ATOMIC_SEQ_CST) != TIMERS_FOR_EVER; }

bool timers_watched(uint64_t ns)
{
    if (!timers_in_use())
        __atomic_store_n(&in_use, true, __ATOMIC_RELAXED);
    return ns >= __atomic_load_n(&watched_until, __ATOMIC_RELAXED);
}

static void not_before(uint64_t ns)
{
    uint64_t is = __atomic_load_n(&earliest, __ATOMIC_SEQ_CST);
    while (ns < is && !__atomic_compare_exchange_n(&earliest, &is, ns, false, __ATOMIC_SEQ_CST,
                                                   __ATOMIC_SEQ_CST))
        ;
}

void timer_arm(struct thread *t, uint32_t shard, uint64_t ns)
{
    struct shard *s = &shards[shard % SHARDS];
    lock_take(&s->lock);
    t->timer_shard = (uint8_t)(shard % SHARDS);
    t->timer_at = ns;
    t->timer_prev = NULL;
    t->timer_next = s->head;
    if (s->head)
        s->head->timer_prev = t;
    s->head = t;
    lock_drop(&s->lock);
    not_before(ns);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (ns < __atomic_load_n(&watched_until, __ATOMIC_SEQ_CST))
        monitor_look_again();
}

/* Pre: s->lock; t is on the list. */
static void take_out(struct shard *s, struct thread *t)
{
    if (t->timer_prev)
        t->timer_prev->timer_next = t->timer_next;
    else
        s->head = t->timer_next;
    if (t->timer_next)
        t->timer_next->timer_prev = t->timer_prev;
    t->timer_at = 0;
}

void timer_disarm(struct thread *t)
{
    struct shard *s = &shards[t->timer_shard];
    lock_take(&s->lock);
    if (t->timer_at)
        take_out(s, t);
    lock_drop(&s->lock);
}

uint64_t timers_watch(uint64_t until)
{
    __atomic_store_n(&watched_until, until, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t first = __atomic_load_n(&earliest, __ATOMIC_SEQ_CST);
    return first < until ? first : until;
}

/* Of all that are due at `now`. */
static void end_waits(uint64_t now, uint8_t end)
{
    struct thread *list = NULL, **tail = &list;
    /* Before the lists are looked at: who arms meanwhile is seen there, or says so here. */
    __atomic_store_n(&earliest, TIMERS_FOR_EVER, __ATOMIC_SEQ_CST);
    for (int i = 0; i < SHARDS; i++) {
        struct shard *s = &shards[i];
        lock_take(&s->lock);
        for (struct thread *t = s->head, *next; t; t = next) {
            next = t->timer_next;
            if (t->timer_at > now) {
                not_before(t->timer_at);
                continue;
            }
            take_out(s, t);
            if (!timer_ends_wait(t)) /* a waker has it, or it is about to look for a signal */
                continue;
            t->interrupted = end;
            t->next = NULL;
            *tail = t;
            tail = &t->next;
        }
        lock_drop(&s->lock);
    }
    slots_make_ready(list);
}

void timers_expire(void)
{
    uint64_t first = __atomic_load_n(&earliest, __ATOMIC_SEQ_CST), now;
    if (first != TIMERS_FOR_EVER && (now = clock_ns(CLOCK_MONOTONIC)) >= first)
        end_waits(now, TIMER_ENDED);
}

void timers_abandon(void)
{
    if (timers_any())
        end_waits(TIMERS_FOR_EVER, WAKES_FOR_NOTHING);
}

void timers_after_fork(void)
{
    for (int i = 0; i < SHARDS; i++)
        shards[i] = (struct shard){0};
    earliest = watched_until = TIMERS_FOR_EVER;
}
