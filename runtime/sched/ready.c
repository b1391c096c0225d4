/* SPDX-License-Identifier: MIT */
#include "sched/ready.h"
#include "sched/slices.h"

enum { LEAST = 16 }; /* part of a slice that is worth going first for */

static int64_t slice(void) { return (int64_t)(SLICE_US * sched.tsc_per_us); }

/* ready_count is read without the lock. */
static void count_is(struct slot *s, uint32_t n)
{
    __atomic_store_n(&s->ready_count, n, __ATOMIC_RELAXED);
}

static void link_behind(struct slot *s, struct thread *before, struct thread *t)
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

static struct thread *unlink_behind(struct slot *s, struct thread *before)
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

static void set_credit(struct thread *t, int64_t credit, uint64_t now)
{
    __atomic_store_n(&t->credit, credit, __ATOMIC_RELAXED);
    __atomic_store_n(&t->credit_at, now, __ATOMIC_RELAXED);
}

bool ready_is_fresh(const struct slot *s, struct thread *t)
{
    if (!ready_any_behind(s))
        return true;
    uint64_t now = tsc();
    /* below 0: the clock of another CPU */
    int64_t gone_by = (int64_t)(now - __atomic_load_n(&t->credit_at, __ATOMIC_RELAXED));
    /* with who runs, and t */
    int64_t share = gone_by > 0 ? gone_by / (s->ready_count + 2) : 0;
    int64_t credit = __atomic_load_n(&t->credit, __ATOMIC_RELAXED) + share;
    if (credit > slice())
        credit = slice();
    set_credit(t, credit, now);
    return credit > slice() / LEAST;
}

void ready_push(struct slot *s, struct thread *t)
{
    if (!ready_is_fresh(s, t)) {
        ready_push_behind(s, t);
        return;
    }
    link_behind(s, s->fresh_tail, t);
    s->fresh_tail = t;
    s->fresh_count++;
}

void ready_push_list(struct slot *s, struct thread *head, struct thread *tail, uint32_t n)
{
    if (ready_any_behind(s)) { /* each may be fresh, or not */
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
    s->ready_tail = s->fresh_tail = tail;
    s->fresh_count += n;
    count_is(s, s->ready_count + n);
}

void ready_push_behind(struct slot *s, struct thread *t) { link_behind(s, s->ready_tail, t); }

void ready_push_first_behind(struct slot *s, struct thread *t) { link_behind(s, s->fresh_tail, t); }

/* The first of those behind has seen fresh ones go first for a slice: many of them, each of which
 * has had little, would keep it from the slot for good. */
static bool is_its_turn(struct slot *s)
{
    uint64_t now = tsc();
    if (!s->fresh_since)
        s->fresh_since = now;
    return (int64_t)(now - s->fresh_since) > slice();
}

struct thread *ready_pop(struct slot *s)
{
    if (!s->ready_head)
        return NULL;
    s->popped_since = s->fresh_since;
    s->popped_behind = false;
    if (s->fresh_count && (!ready_any_behind(s) || !is_its_turn(s))) {
        if (--s->fresh_count == 0)
            s->fresh_tail = NULL;
        return unlink_behind(s, NULL);
    }
    s->popped_behind = true;
    s->fresh_since = 0;
    return unlink_behind(s, s->fresh_tail);
}

void ready_unpop(struct slot *s, struct thread *t)
{
    s->fresh_since = s->popped_since;
    if (s->popped_behind) {
        ready_push_first_behind(s, t);
        return;
    }
    link_behind(s, NULL, t);
    if (s->fresh_count++ == 0)
        s->fresh_tail = t;
}

struct thread *ready_take_all(struct slot *s)
{
    struct thread *list = s->ready_head;
    s->ready_head = s->ready_tail = s->fresh_tail = NULL;
    s->fresh_count = 0;
    s->fresh_since = 0;
    count_is(s, 0);
    return list;
}

void ready_charge(const struct slot *s, struct thread *t)
{
    if (!ready_any_behind(s))
        return;
    uint64_t now = tsc(), since = t->mounted_at > t->charged_at ? t->mounted_at : t->charged_at;
    int64_t credit = __atomic_load_n(&t->credit, __ATOMIC_RELAXED) - (int64_t)(now - since);
    t->charged_at = now;
    __atomic_store_n(&t->credit, credit < -slice() ? -slice() : credit, __ATOMIC_RELAXED);
}

void ready_slice_ended(struct thread *t) { set_credit(t, 0, tsc()); }
