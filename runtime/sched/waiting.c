/* SPDX-License-Identifier: MIT */
#include "sched/waiting.h"
#include "sched/nap.h"

enum {
    PARKED_US = 1000,      /* maximum time parked at first */
    PARKED_MAX_US = 64000, /* limit of that time, which doubles while the words do not change */
    /* Threads in counted waits share one of so many parts of the time, to come to the end of their
     * counts: otherwise they could never do what follows. The share is in turns: on a contended
     * CPU, time passes without turns. */
    COUNT_SHARE = 16,
    TURN_NS = 100,
};

bool waiting_changed(const struct wait_word *w, uint32_t words)
{
    uint32_t is;
    for (uint32_t i = 0; i < words; i++)
        if (lissom_guarded_load((const uint32_t *)w[i].address, &is) ||
            (is ^ w[i].value) & w[i].mask)
            return true; /* an unreadable word is the thread's own problem */
    return words == 0;
}

bool waiting_words_changed(const struct thread *t)
{
    return waiting_changed(t->wait_word, t->wait_words);
}

/* Return whether t's wait is over. changed: waiting_words_changed(t). A signal ends it, too. */
static bool over(const struct thread *t, bool changed, uint64_t now)
{
    return changed || t->pending_work || now > t->wait_until;
}

void waiting_push(struct slot *s, struct thread *t, uint64_t now)
{
    if (!t->wait_bound_us)
        t->wait_bound_us = PARKED_US;
    t->wait_until = now + t->wait_bound_us * sched.tsc_per_us;
    t->next = NULL;
    if (s->waiting_tail)
        s->waiting_tail->next = t;
    else
        s->waiting_head = t;
    s->waiting_tail = t;
    __atomic_store_n(&s->waiting_count, s->waiting_count + 1, __ATOMIC_RELAXED);
}

uint32_t waiting_turns(uint64_t away, uint32_t sharers)
{
    uint64_t us = sched.tsc_per_us;
    if ((int64_t)away < 0) /* the counters of two CPUs differ */
        return 0;
    if (away > PARKED_MAX_US * us)
        away = PARKED_MAX_US * us;
    return (uint32_t)(away / (COUNT_SHARE * TURN_NS * (uint64_t)sharers * us / 1000 + 1));
}

static struct thread *take(struct slot *s, struct thread *before, struct thread *t, bool changed)
{
    if (before)
        before->next = t->next;
    else
        s->waiting_head = t->next;
    if (s->waiting_tail == t)
        s->waiting_tail = before;
    t->next = NULL;
    __atomic_store_n(&s->waiting_count, s->waiting_count - 1, __ATOMIC_RELAXED);
    if (changed) {
        t->wait_bound_us = PARKED_US;
        t->counts_on = 0;
        nap_not_yet(s);
        return t;
    }
    if (t->wait_counted)
        t->counts_on = waiting_turns(tsc() - (t->wait_until - t->wait_bound_us * sched.tsc_per_us),
                                     s->waiting_count + 1);
    if (t->wait_bound_us < PARKED_MAX_US)
        t->wait_bound_us *= 2;
    return t;
}

struct thread *waiting_take_over(struct slot *s, uint64_t now)
{
    for (struct thread *before = NULL, *t = s->waiting_head; t; before = t, t = t->next) {
        bool changed = waiting_words_changed(t);
        if (over(t, changed, now))
            return take(s, before, t, changed);
    }
    return NULL;
}

struct thread *waiting_take_any(struct slot *s)
{
    struct thread *t = s->waiting_head;
    return t ? take(s, NULL, t, waiting_words_changed(t)) : NULL;
}

bool waiting_any_over(struct slot *s, uint64_t now, bool in_hurry)
{
    bool any = false;
    if (!__atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED))
        return false;
    if (!in_hurry)
        lock_take(&s->lock);
    else if (!lock_try(&s->lock))
        return false;
    for (const struct thread *t = s->waiting_head; t && !any; t = t->next)
        any = over(t, waiting_words_changed(t), now);
    lock_drop(&s->lock);
    return any;
}
