/* SPDX-License-Identifier: MIT
 *
 * Timers: unordered lists in shards, each with a lock. Most timers are disarmed long before they
 * are due, so arming and disarming must be cheap. The lists are only walked when the first of all
 * timers may be due.
 */
#include "sched/timers.h"
#include "sched/hooks.h"

#include <time.h>

enum { SHARDS = 16, WAKES_FOR_NOTHING = 0 };
#define NEVER (uint64_t)INT64_MAX /* no clock of the kernel reaches this */

static struct shard {
    struct lock lock;
    struct thread *head;
} __attribute__((aligned(64))) shards[SHARDS];

/* No timer of the clock is due before this. It is too early after the timer that set it was
 * disarmed. */
static uint64_t earliest[TIMER_CLOCKS] = {TIMERS_FOR_EVER, TIMERS_FOR_EVER};
/* The monitor will check the timers by then, whatever is armed from now on. Of CLOCK_MONOTONIC. */
static uint64_t watched_until = TIMERS_FOR_EVER;
static bool in_use;

bool timers_in_use(void) { return __atomic_load_n(&in_use, __ATOMIC_RELAXED); }

static uint64_t first(enum timer_clock clock)
{
    return __atomic_load_n(&earliest[clock], __ATOMIC_SEQ_CST);
}

bool timers_any(void)
{
    return first(TIMER_MONOTONIC) != TIMERS_FOR_EVER || first(TIMER_REALTIME) != TIMERS_FOR_EVER;
}

/* Convert to CLOCK_MONOTONIC as the clocks are now, or a little sooner; 0: in the past. */
static uint64_t in_monotonic(enum timer_clock clock, uint64_t ns)
{
    if (clock == TIMER_MONOTONIC || ns == TIMERS_FOR_EVER)
        return ns;
    uint64_t monotonic = clock_ns(CLOCK_MONOTONIC), now = clock_ns(CLOCK_REALTIME), at;
    if (ns <= now)
        return 0;
    return __builtin_add_overflow(monotonic, ns - now, &at) ? TIMERS_FOR_EVER : at;
}

/* Return whether the monitor checks before `ns` of `clock`. */
static bool is_watched(enum timer_clock clock, uint64_t ns)
{
    uint64_t until = __atomic_load_n(&watched_until, __ATOMIC_SEQ_CST);
    return until != TIMERS_FOR_EVER && in_monotonic(clock, ns) >= until;
}

bool timers_watched(enum timer_clock clock, uint64_t ns)
{
    if (!timers_in_use())
        __atomic_store_n(&in_use, true, __ATOMIC_RELAXED);
    return is_watched(clock, ns);
}

static void not_before(enum timer_clock clock, uint64_t ns)
{
    uint64_t is = first(clock);
    while (ns < is && !__atomic_compare_exchange_n(&earliest[clock], &is, ns, false,
                                                   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

void timer_arm(struct thread *t, uint32_t shard, enum timer_clock clock, uint64_t ns)
{
    struct shard *s = &shards[shard % SHARDS];
    if (ns >= NEVER)
        return;
    lock_take(&s->lock);
    t->timer_shard = (uint8_t)(shard % SHARDS);
    t->timer_clock = (uint8_t)clock;
    t->timer_at = ns;
    t->timer_prev = NULL;
    t->timer_next = s->head;
    if (s->head)
        s->head->timer_prev = t;
    s->head = t;
    lock_drop(&s->lock);
    not_before(clock, ns);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!is_watched(clock, ns))
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

/* End all waits that are due at `now`. */
static void end_waits(const uint64_t now[TIMER_CLOCKS], uint8_t end)
{
    struct thread *list = NULL, **tail = &list;
    /* Before the lists are read: a timer that is armed meanwhile is seen in its list, or lowers
     * `earliest`. */
    for (int i = 0; i < TIMER_CLOCKS; i++)
        __atomic_store_n(&earliest[i], TIMERS_FOR_EVER, __ATOMIC_SEQ_CST);
    for (int i = 0; i < SHARDS; i++) {
        struct shard *s = &shards[i];
        lock_take(&s->lock);
        for (struct thread *t = s->head, *next; t; t = next) {
            next = t->timer_next;
            if (t->timer_at > now[t->timer_clock]) {
                not_before(t->timer_clock, t->timer_at);
                continue;
            }
            take_out(s, t);
            /* a waker has taken it, or it is about to check for a signal */
            if (!timer_ends_wait(t))
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

static void read_clocks(uint64_t now[TIMER_CLOCKS])
{
    now[TIMER_MONOTONIC] = clock_ns(CLOCK_MONOTONIC);
    now[TIMER_REALTIME] = clock_ns(CLOCK_REALTIME);
}

/* End all waits that are due now. */
static void look(void)
{
    uint64_t now[TIMER_CLOCKS];
    read_clocks(now);
    end_waits(now, TIMER_ENDED);
}

static uint64_t sooner(uint64_t a, uint64_t b) { return a < b ? a : b; }

struct timers_look timers_watch(uint64_t until)
{
    /* how late a change of CLOCK_REALTIME may be noticed */
    enum { SET_NS = 100000000 };
    __atomic_store_n(&watched_until, until, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (until == TIMERS_FOR_EVER && first(TIMER_MONOTONIC) != TIMERS_FOR_EVER &&
        first(TIMER_REALTIME) != TIMERS_FOR_EVER)
        look(); /* all timers may have been disarmed */
    uint64_t realtime = first(TIMER_REALTIME), at = sooner(until, first(TIMER_MONOTONIC));
    if (realtime == TIMERS_FOR_EVER)
        return (struct timers_look){at, TIMER_MONOTONIC};
    if (at == TIMERS_FOR_EVER)
        return (struct timers_look){realtime, TIMER_REALTIME};
    at = sooner(at, in_monotonic(TIMER_REALTIME, realtime));
    return (struct timers_look){sooner(at, clock_ns(CLOCK_MONOTONIC) + SET_NS), TIMER_MONOTONIC};
}

void timers_expire(void)
{
    if (!timers_any())
        return;
    uint64_t now[] = {
        [TIMER_MONOTONIC] = clock_ns(CLOCK_MONOTONIC), [TIMER_REALTIME] = clock_ns(CLOCK_REALTIME)};
    if (now[TIMER_MONOTONIC] >= first(TIMER_MONOTONIC) ||
        now[TIMER_REALTIME] >= first(TIMER_REALTIME))
        end_waits(now, TIMER_ENDED);
}

void timers_abandon(void)
{
    const uint64_t end_of_time[] = {TIMERS_FOR_EVER, TIMERS_FOR_EVER};
    if (timers_any())
        end_waits(end_of_time, WAKES_FOR_NOTHING);
}

void timers_after_fork(void)
{
    for (int i = 0; i < SHARDS; i++)
        shards[i] = (struct shard){0};
    earliest[TIMER_MONOTONIC] = earliest[TIMER_REALTIME] = watched_until = TIMERS_FOR_EVER;
}
