/* SPDX-License-Identifier: MIT
 *
 * Find the counter that ends a loop, and how many iterations are left. spin/prove.c has found what
 * changes, and by how much. The branches that depend on the counter were seen in two iterations;
 * the values that they compare change linearly.
 */
#include "spin/internal.h"

static bool goes_as_before(const struct compare *c, uint64_t l, uint64_t r)
{
    uint32_t flags;
    spin_alu(c->at[1].alu, l, r, 0, c->at[1].size, &flags);
    return spin_condition_holds(c->condition, flags) == c->taken;
}

/* Returns the iterations until an unsigned counter of `size` bytes wraps around. Beyond that, a
 * comparison with it is not monotonic. */
static uint64_t turns_to_wrap(uint64_t v, uint64_t by, unsigned size)
{
    uint64_t is = low_bytes(v, size);
    int64_t step = (int64_t)by;
    return !step ? ~0ull : step < 0 ? is / -by : (low_bytes(~0ull, size) - is) / by;
}

static bool is_unsigned(unsigned condition) { return condition >> 1 == 1 || condition >> 1 == 3; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t spin_turns_left(const struct compare *c, uint64_t *dl, uint64_t *dr)
{
    const struct flag_source *p = &c->at[0], *q = &c->at[1];
    if (c->seen != 2 || q->alu == ALU_NONE || p->alu != q->alu || p->size != q->size)
        return SPIN_TURNS_UNKNOWN;
    *dl = (uint64_t)sign_extended(q->l - p->l, q->size);
    *dr = (uint64_t)sign_extended(q->r - p->r, q->size);
    if (!*dl && !*dr)
        return SPIN_TURNS_UNKNOWN;
    if (q->alu == ALU_AND && !(*dl == *dr && low_bytes(q->l, q->size) == low_bytes(q->r, q->size)))
        return SPIN_TURNS_UNKNOWN; /* a mask is not linear */
    if (!goes_as_before(c, q->l + *dl, q->r + *dr))
        return 1;
    if (c->condition >> 1 == 2) {
        /* Equality: solve for zero by division. */
        uint64_t x = q->alu == ALU_SUB ? q->l - q->r : q->alu == ALU_ADD ? q->l + q->r : q->l;
        uint64_t dx = q->alu == ALU_SUB ? *dl - *dr : q->alu == ALU_ADD ? *dl + *dr : *dl;
        int64_t step = sign_extended(dx, q->size);
        if (!step)
            return SPIN_TURNS_UNKNOWN;
        uint64_t distance = low_bytes(step < 0 ? x : -x, q->size),
                 by = step < 0 ? -(uint64_t)step : (uint64_t)step;
        return distance % by ? SPIN_TURNS_UNKNOWN : distance / by;
    }
    uint64_t lo = 1, hi = 2, most = 1ull << 62;
    if (is_unsigned(c->condition))
        most = least(most,
                     least(turns_to_wrap(q->l, *dl, q->size), turns_to_wrap(q->r, *dr, q->size)));
    if (most < 2)
        return SPIN_TURNS_UNKNOWN;
    while (goes_as_before(c, q->l + hi * *dl, q->r + hi * *dr)) {
        if (hi == most)
            return SPIN_TURNS_UNKNOWN;
        lo = hi;
        hi = least(2 * hi, most);
    }
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (goes_as_before(c, q->l + mid * *dl, q->r + mid * *dr))
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}

void spin_describe_counter(struct spin *s)
{
    struct spin_result *r = s->result;
    const struct head *h = s->rec.head;
    uint64_t stride[2] = {0, 0};
    r->remaining = s->rec.counter_branch ? SPIN_TURNS_UNKNOWN : SPIN_TURNS_UNBOUNDED;
    for (unsigned i = 0; i < s->rec.compares; i++) {
        uint64_t dl = 0, dr = 0, n = spin_turns_left(&s->rec.compare[i], &dl, &dr);
        if (n != SPIN_TURNS_UNKNOWN && (r->remaining == SPIN_TURNS_UNKNOWN || n < r->remaining)) {
            r->remaining = n;
            stride[0] = dl;
            stride[1] = dr;
        }
    }
    /* Of the differences that change as the compared value does, prefer a word in memory: a
     * register is probably a copy of it. */
    const struct difference *best = NULL;
    int best_score = -1;
    for (unsigned i = 0; i < h->differences; i++) {
        const struct difference *d = &h->difference[i];
        if (d->varies)
            continue;
        int score = 2 * ((uint64_t)d->by == stride[0] || (uint64_t)d->by == stride[1]) +
                    (d->granule ? 1 : 0);
        if (score > best_score) {
            best = d;
            best_score = score;
        }
    }
    if (!best)
        return;
    r->stride = best->by;
    r->counter_in_memory = best->granule;
    if (best->granule)
        r->counter_address = s->now.store[best->index].address;
    else
        r->counter_register = best->index;
}
