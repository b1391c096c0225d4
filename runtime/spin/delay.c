/* SPDX-License-Identifier: MIT
 *
 * Delays within a waiting loop, such as the backoff of a lock: inner loops that only count.
 * Interpreting all iterations may take too long for a scan. All iterations do the same, so they are
 * skipped: the counters advance to their values in the last one.
 *
 * A loop is proven to be a delay once (spin_delay_learn). After that, each visit of its head is
 * compared with the last one. If the same counters changed by the same amounts, the branch that
 * ends the loop says how many iterations are left.
 *
 * A delay does not count as part of the loop around it. It is no head of its own, and no place for
 * a spin site, which would be hit in each of its iterations.
 *
 * Only short delays are skipped: a thread that delays itself for long is not waiting yet.
 */
#include "spin/internal.h"

enum { LONGEST = 1 << 16 }; /* instructions: about 20 us */

static bool is_short(const struct delay *d, uint64_t turns) { return turns <= LONGEST / d->turn; }

/* Advance the counters by `turns` iterations. Pre: s->now is at a visit of the delay's head. */
static void move(struct spin *s, const struct delay *d, uint64_t turns)
{
    for (unsigned i = 0; i < d->counters; i++) {
        const struct difference *c = &d->counter[i];
        uint64_t by = (uint64_t)c->by * turns;
        if (c->granule)
            s->now.store[c->index].value += (uint32_t)by;
        else
            s->now.r[c->index] += by;
    }
    s->pauses += (uint32_t)turns * d->pauses;
    s->rec.pauses += (uint32_t)turns * d->pauses;
}

bool spin_delay_learn(struct spin *s, uint64_t from)
{
    struct recording *rec = &s->rec;
    struct head *h = rec->head;
    struct delay *d = &h->delay;
    uint64_t turns = s->result->remaining;
    if (rec->deciding || rec->table || rec->walks || rec->compares != 1 ||
        turns == SPIN_TURNS_UNKNOWN || s->now.transient)
        return false;
    for (unsigned i = 0; i < h->differences; i++)
        if (h->difference[i].varies)
            return false;
    *d = (struct delay){.branch = rec->compare[0],
                        .back = from,
                        .pauses = rec->pauses / 2,
                        .turn = s->result->turn ? s->result->turn : 1,
                        .counters = h->differences};
    __builtin_memcpy(d->counter, h->difference, sizeof d->counter);
    if (!is_short(d, turns))
        return false;
    h->is_delay = s->has_delays = s->asked_time = true;
    move(s, d, turns - 1);
    d->branch.seen = 0;
    return true;
}

struct head *spin_delay_at(struct spin *s, uint64_t address)
{
    for (unsigned i = 0; s->has_delays && i < s->heads; i++)
        if (s->head[i].is_delay && s->head[i].address == address)
            return &s->head[i];
    return NULL;
}

bool spin_in_delay(const struct spin *s, uint64_t address)
{
    for (unsigned i = 0; s->has_delays && i < s->heads; i++)
        if (s->head[i].is_delay && address >= s->head[i].address &&
            address <= s->head[i].delay.back)
            return true;
    return false;
}

void spin_delay_branch(struct spin *s, uint64_t address, bool taken)
{
    for (unsigned i = 0; s->has_delays && i < s->heads; i++) {
        struct compare *c = &s->head[i].delay.branch;
        if (!s->head[i].is_delay || c->rip != address)
            continue;
        if (c->taken != taken) {
            c->seen = 0;
            continue;
        }
        c->at[0] = c->at[1];
        c->at[1] = s->source;
        c->seen = c->seen ? 2 : 1;
    }
}

void spin_delay_turn(struct spin *s, struct head *h)
{
    struct delay *d = &h->delay;
    struct difference differ[DIFFERENCES];
    int n = spin_state_compare(s, &h->last, &s->now, differ);
    bool counts = n == d->counters;
    for (int i = 0; counts && i < n; i++)
        counts = differ[i].granule == d->counter[i].granule &&
                 differ[i].index == d->counter[i].index && differ[i].by == d->counter[i].by;
    uint64_t dl, dr, turns = counts ? spin_turns_left(&d->branch, &dl, &dr) : SPIN_TURNS_UNKNOWN;
    if (turns != SPIN_TURNS_UNKNOWN && turns > 1 && is_short(d, turns)) {
        move(s, d, turns - 1);
        d->branch.seen = 0;
    }
    spin_state_copy(&h->last, &s->now);
}
