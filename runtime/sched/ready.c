/* SPDX-License-Identifier: MIT */
#include "sched/ready.h"
#include "sched/slices.h"

enum { LEAST = 16 }; /* minimum lag of an active thread: this part of a slice */

static int64_t slice(void) { return (int64_t)(SLICE_US * sched.tsc_per_us); }

/* Set ready_count, which is read without the lock. */
static void count_is(struct slot *s, uint32_t n)
{
    __atomic_store_n(&s->ready_count, n, __ATOMIC_RELAXED);
}

static void link_after(struct slot *s, struct thread *before, struct thread *t)
{
    t->next = before ? before->next : s->ready_head;
    if (before)
        before->next = t;
    else
        s->ready_head = t;
    if (!t->next)
        s->ready_tail = t;
    count_is(s, s->ready_count + 1);
}

static struct thread *unlink_after(struct slot *s, struct thread *before)
{
    struct thread *t = before ? before->next : s->ready_head;
    if (before)
        before->next = t->next;
    else
        s->ready_head = t->next;
    if (!t->next)
        s->ready_tail = before;
    t->next = NULL;
    count_is(s, s->ready_count - 1);
    return t;
}

static void set_lag(struct thread *t, int64_t lag, uint64_t now)
{
    __atomic_store_n(&t->lag, lag, __ATOMIC_RELAXED);
    __atomic_store_n(&t->lag_at, now, __ATOMIC_RELAXED);
}

bool ready_is_active(const struct slot *s, struct thread *t)
{
    if (!ready_any_expired(s))
        return true;
    uint64_t now = tsc();
    /* negative: the clock of another CPU is behind */
    int64_t gone_by = (int64_t)(now - __atomic_load_n(&t->lag_at, __ATOMIC_RELAXED));
    /* shared with the running thread and t */
    int64_t share = gone_by > 0 ? gone_by / (s->ready_count + 2) : 0;
    int64_t lag = __atomic_load_n(&t->lag, __ATOMIC_RELAXED) + share;
    if (lag > slice())
        lag = slice();
    set_lag(t, lag, now);
    return lag > slice() / LEAST;
}

void ready_push(struct slot *s, struct thread *t)
{
    if (!ready_is_active(s, t)) {
        ready_push_expired(s, t);
        return;
    }
    link_after(s, s->active_tail, t);
    s->active_tail = t;
    s->active_count++;
}

void ready_push_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n)
{
    if (ready_any_expired(s)) { /* each may be active or not */
        for (struct thread *next; head; head = next) {
            next = head->next;
            ready_push(s, head);
        }
        return;
    }
    if (s->ready_tail)
        s->ready_tail->next = head;
    else
        s->ready_head = head;
    s->ready_tail = s->active_tail = tail;
    s->active_count += n;
    count_is(s, s->ready_count + n);
}

void ready_push_expired(struct slot *s, struct thread *t) { link_after(s, s->ready_tail, t); }

void ready_push_first_expired(struct slot *s, struct thread *t)
{
    link_after(s, s->active_tail, t);
}

/* Return whether the first expired thread has waited for a slice while active ones ran. Many active
 * threads that each run little would otherwise keep it from the slot for good. */
static bool is_turn_of_expired(struct slot *s)
{
    uint64_t now = tsc();
    if (!s->active_since)
        s->active_since = now;
    return (int64_t)(now - s->active_since) > slice();
}

struct thread *ready_pop(struct slot *s)
{
    if (!s->ready_head)
        return NULL;
    s->popped_since = s->active_since;
    s->popped_expired = false;
    if (s->active_count && (!ready_any_expired(s) || !is_turn_of_expired(s))) {
        if (--s->active_count == 0)
            s->active_tail = NULL;
        return unlink_after(s, NULL);
    }
    s->popped_expired = true;
    s->active_since = 0;
    return unlink_after(s, s->active_tail);
}

void ready_unpop(struct slot *s, struct thread *t)
{
    s->active_since = s->popped_since;
    if (s->popped_expired) {
        ready_push_first_expired(s, t);
        return;
    }
    link_after(s, NULL, t);
    if (s->active_count++ == 0)
        s->active_tail = t;
}

struct thread *ready_take_all(struct slot *s)
{
    struct thread *list = s->ready_head;
    s->ready_head = s->ready_tail = s->active_tail = NULL;
    s->active_count = 0;
    s->active_since = 0;
    count_is(s, 0);
    return list;
}

void ready_charge(const struct slot *s, struct thread *t)
{
    if (!ready_any_expired(s))
        return;
    uint64_t now = tsc(), since = t->mounted_at > t->charged_at ? t->mounted_at : t->charged_at;
    int64_t lag = __atomic_load_n(&t->lag, __ATOMIC_RELAXED) - (int64_t)(now - since);
    t->charged_at = now;
    __atomic_store_n(&t->lag, lag < -slice() ? -slice() : lag, __ATOMIC_RELAXED);
}

void ready_slice_ended(struct thread *t) { set_lag(t, 0, tsc()); }
