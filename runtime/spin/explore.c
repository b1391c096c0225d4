/* SPDX-License-Identifier: MIT
 *
 * Find out whether a branch leaves a loop that a counter or a time limit also ends. Take its other
 * side, and check whether that returns to the head.
 */
#include "spin/internal.h"

#include <sys/syscall.h>

enum { EXPLORED = 4 }; /* deciding branches to try */

bool spin_only_dead(const struct head *h)
{
    for (unsigned i = 0; i < h->differences; i++)
        if (!h->difference[i].varies)
            return false;
    return true;
}

/* Returns whether the other side of the branch stayed in the same loop. At least one counter must
 * have moved by its stride, and none in the other direction, that is, been reset. A counter that
 * moved by less is a sum to which this iteration added less: an inner loop ended earlier, such as
 * one within `if (few > 0)`. */
static bool counters_went_on(const struct spin *s)
{
    const struct head *h = s->rec.head;
    const struct state *a = &h->last, *b = &s->now;
    bool any = spin_only_dead(h);
    if (a->r[RSP] != b->r[RSP])
        return false;
    for (unsigned i = 0; i < h->differences; i++) {
        const struct difference *d = &h->difference[i];
        if (d->varies)
            continue;
        uint64_t moved =
            d->granule
                ? (uint64_t)(int64_t)(int32_t)(b->store[d->index].value - a->store[d->index].value)
                : b->r[d->index] - a->r[d->index];
        if (moved == (uint64_t)d->by)
            any = true;
        else if (moved && ((int64_t)moved < 0) != (d->by < 0))
            return false;
    }
    return any;
}

enum explore spin_came_back(struct spin *s)
{
    struct recording *rec = &s->rec;
    if (rec->counted)
        return counters_went_on(s) ? EXPLORE_CAME_BACK : EXPLORE_LEFT;
    if (s->now.r[RSP] != rec->head->last.r[RSP] || s->now.transient != rec->head->last.transient)
        return EXPLORE_LEFT;
    /* back after the time was read once more */
    return ++rec->came_back <= rec->period ? EXPLORE_AFTER : EXPLORE_CAME_BACK;
}

/* Without a vdso the C library asks the kernel for the time: that does not leave the loop. */
static bool asks_for_time(const struct spin *s)
{
    uint64_t nr = s->now.r[RAX];
    return s->stop && s->result->reason == SPIN_R_SYSCALL &&
           (nr == SYS_clock_gettime || nr == SYS_gettimeofday || nr == SYS_time);
}

bool spin_some_way_leaves(struct spin *s)
{
    struct recording saved = s->rec;
    struct spin_result *r = s->result;
    uint32_t limit = 4 * r->turn + 200;
    bool leaves = saved.table;
    for (unsigned i = 0; !leaves && i < EXPLORED && i < saved.deciding_first; i++) {
        spin_state_restore(s, &saved.head->last);
        s->rec = saved;
        s->rec.on = true;
        s->rec.deciding = 0;
        s->rec.too_many = false;
        s->rec.loads = SPIN_MAX_LOADS; /* the predicate is complete: note no more loads */
        s->exploring = EXPLORE_BEFORE;
        s->invert = i;
        for (uint32_t n = 0;
             n < limit && !s->stop && s->exploring < EXPLORE_CAME_BACK && s->steps < 2 * s->budget;
             n++)
            spin_step(s);
        leaves =
            (s->exploring == EXPLORE_AFTER || s->exploring == EXPLORE_LEFT) && !asks_for_time(s);
        s->stop = false;
    }
    s->exploring = EXPLORE_NO;
    s->rec = saved;
    s->rec.explore = false;
    spin_state_restore(s, &saved.head->last);
    return leaves;
}
