/* SPDX-License-Identifier: MIT */
#include "cpus/beside.h"

enum {
    HOLD_US = 100000,      /* pause before more slots are tried */
    HOLD_MAX_US = 1600000, /* maximum of the pause, which doubles after each useless try */
    CALM = 3,              /* checks without others that show that they have left */
};

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static bool set(struct beside *b, uint32_t slots, uint64_t now)
{
    bool changes = b->slots != slots;
    b->slots = slots;
    b->retry_us = now + b->hold_us;
    return changes;
}

/* Decrease the slots: there were too many. */
static bool fewer(struct beside *b, uint32_t slots, uint64_t now)
{
    b->hold_us = b->tries && b->hold_us ? least(b->hold_us * 2, HOLD_MAX_US) : HOLD_US;
    b->tries = false;
    b->exceeded = b->calm = 0;
    return set(b, slots, now);
}

static bool more(struct beside *b, uint32_t slots, uint64_t now)
{
    if (b->tries) /* the last increase was useful */
        b->hold_us = HOLD_US;
    b->tries = true;
    return set(b, slots, now);
}

/* Decide while there are no more slots than without others. */
static bool look_within(struct beside *b, const struct beside_look *l,
                        const struct beside_share *share)
{
    uint32_t n = l->slots, worth = n * l->offered / BESIDE_CPU;
    worth = worth < 1 ? 1 : worth < n ? worth : n - 1;
    if (l->others && n > 1 && l->used < worth * l->offered)
        return fewer(b, worth, l->now_us);
    if (l->now_us < b->retry_us)
        return false;
    if (n < share->slots)
        return more(b, least(n + 1 + n / 4, share->slots), l->now_us);
    if (l->others && share->may_exceed && l->threads > n && l->used * 10 >= n * l->offered * 9) {
        b->before = l->used;
        return more(b, least(b->exceeded ? b->exceeded : 2 * n, l->threads), l->now_us);
    }
    b->tries = false;
    b->exceeded = 0;
    return set(b, 0, l->now_us);
}

static bool look_beyond(struct beside *b, const struct beside_look *l,
                        const struct beside_share *share)
{
    uint32_t n = l->slots;
    bool idle = l->used * 2 < n * l->offered;
    if (!share->may_exceed || idle || (b->tries && l->used * 10 < b->before * 9))
        return fewer(b, 0, l->now_us);
    b->exceeded = n;
    if (b->tries && l->threads > n) {
        b->before = l->used;
        return more(b, least(2 * n, l->threads), l->now_us);
    }
    b->tries = false;
    if (l->now_us < b->retry_us)
        return false;
    /* Check whether there are still others: among so many threads of the program they do not
     * show. */
    b->hold_us = least(b->hold_us * 2, HOLD_MAX_US);
    b->slots = 0;
    b->retry_us = l->now_us; /* the next check may return to `exceeded` slots */
    return true;
}

bool beside_look(struct beside *b, const struct beside_look *l, const struct beside_share *share)
{
    if (l->others && l->slots < share->slots && !b->tries) {
        b->calm = 1;
    } else if (!l->others && b->calm && ++b->calm > CALM) {
        b->calm = 0;
        b->hold_us = HOLD_US;
        b->retry_us = l->now_us;
    }
    return l->slots <= share->slots ? look_within(b, l, share) : look_beyond(b, l, share);
}

uint32_t beside_slots(const struct beside *b, const struct beside_share *share)
{
    bool none = !b->slots || (b->slots > share->slots && !share->may_exceed);
    return none ? share->slots : b->slots;
}
