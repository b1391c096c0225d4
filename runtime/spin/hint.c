/* SPDX-License-Identifier: MIT
 *
 * Find the pauses of a thread that is not proven to wait. It may wait all the same: search other
 * threads' queues in random order, count its failures in memory, or try to take a lock in each
 * iteration. Its `pause` instructions are hints of that, as for a hypervisor (pause-loop exiting).
 */
#include "spin/internal.h"

enum { STEPS = 600 };

static bool has_just_paused(const struct spin_config *c, uint64_t rip)
{
    uint8_t code[2];
    long (*fetch)(uintptr_t, void *, unsigned) = c->fetch ? c->fetch : c->load;
    return !fetch(rip - 2, code, sizeof code) && code[0] == 0xf3 && code[1] == 0x90;
}

void spin_find_pauses(struct spin *s, const struct spin_config *c,
                      const struct spin_registers *from)
{
    struct spin_result *r = s->result;
    /* A loop that pauses spends most of its time in the pause. */
    if (!s->pauses && !has_just_paused(c, from->rip))
        return;
    const struct spin_result before = *r;
    uint32_t steps = s->steps;
    spin_begin(s, c, from, r);
    s->only_pauses = true;
    while (!s->stop && s->steps < STEPS && s->pauses < SPIN_MIN_PAUSES)
        spin_step(s);
    *r = before;
    s->steps += steps;
    if (s->pauses < SPIN_MIN_PAUSES || !s->hint)
        return;
    r->verdict = SPIN_PAUSE_ONLY;
    r->pause = r->head = r->loop = s->hint;
}
