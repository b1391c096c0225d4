/* SPDX-License-Identifier: MIT
 *
 * Collect the inputs of a proof: registers and flags that the loop reads, words that it loads in
 * and before the recorded iteration, and deciding branches.
 */
#include "spin/internal.h"

static bool is_among(const struct spin_load *of, unsigned loads, const struct spin_load *l)
{
    for (unsigned i = 0; i < loads; i++)
        if (of[i].address == l->address && of[i].bytes == l->bytes && of[i].value == l->value)
            return true;
    return false;
}

static void note_earlier(struct spin *s, const struct spin_load *l)
{
    struct spin_result *r = s->result;
    if (is_among(r->earlier, r->earlier_loads, l))
        return;
    if (r->earlier_loads == SPIN_MAX_EARLIER)
        s->too_many_earlier = true;
    else
        r->earlier[r->earlier_loads++] = *l;
}

void spin_loads_are_earlier(struct spin *s)
{
    s->too_many_earlier |= s->rec.too_many;
    for (unsigned i = 0; i < s->rec.loads; i++)
        note_earlier(s, &s->result->load[i]);
}

void spin_note_load(struct spin *s, uint64_t address, unsigned size, uint64_t value)
{
    struct spin_result *r = s->result;
    if (!s->rec.on) {
        const struct spin_load l = {address, value, (uint8_t)size, spin_on_stack(s, address)};
        note_earlier(s, &l);
        return;
    }
    for (unsigned i = 0; i < s->rec.loads; i++) {
        if (r->load[i].address != address || r->load[i].bytes != size)
            continue;
        if (r->load[i].value != value)
            s->rec.failed = true; /* the word changed meanwhile: the wait may be over */
        return;
    }
    if (s->rec.loads == SPIN_MAX_LOADS) {
        s->rec.too_many = true;
        return;
    }
    r->load[s->rec.loads++] =
        (struct spin_load){address, value, (uint8_t)size, spin_on_stack(s, address)};
}

static void note_compare(struct spin *s, const struct op *op, bool taken)
{
    struct recording *rec = &s->rec;
    rec->counter_branch = true;
    struct compare *c = rec->compare;
    while (c < rec->compare + rec->compares && c->rip != op->address)
        c++;
    if (c == rec->compare + COMPARES)
        return;
    if (c == rec->compare + rec->compares) {
        rec->compares++;
        *c = (struct compare){.rip = op->address, .condition = op->condition, .taken = taken};
    }
    if (c->taken != taken)
        c->seen = 2; /* both ways in one iteration: unusable */
    if (c->seen < 2)
        c->at[c->seen] = s->source;
    c->seen++;
}

static bool same_source(const struct flag_source *a, const struct flag_source *b)
{
    return a->alu == b->alu && a->size == b->size && a->l == b->l && a->r == b->r;
}

/* Note a branch on the time. While exploring, other operands than in the recorded iteration belong
 * to another time limit: the loop was left. */
static void note_time(struct spin *s, uint64_t rip)
{
    struct recording *rec = &s->rec;
    struct timed_branch *b = rec->timed_branch;
    while (b < rec->timed_branch + rec->timed && b->rip != rip)
        b++;
    bool is_new = b == rec->timed_branch + rec->timed;
    if (s->exploring == EXPLORE_AFTER && !is_new && !same_source(&b->at, &s->source))
        s->exploring = EXPLORE_LEFT;
    if (s->exploring || (is_new && rec->timed == TIMED))
        return;
    *b = (struct timed_branch){rip, s->source};
    rec->timed += is_new;
}

bool spin_at_branch(struct spin *s, const struct op *op, bool taken, uint8_t taint)
{
    spin_delay_branch(s, op->address, taken);
    if (!s->rec.on)
        return taken;
    if (taint & T_COUNTER) {
        note_compare(s, op, taken);
    } else if (taint & T_CLOCK) {
        note_time(s, op->address);
    } else if (taint & T_LOAD) {
        if (s->exploring == EXPLORE_BEFORE && s->rec.deciding == s->invert) {
            s->exploring = EXPLORE_AFTER;
            taken = !taken;
        }
        s->rec.deciding++;
    }
    return taken;
}

void spin_describe_inputs(struct spin *s)
{
    struct spin_result *r = s->result;
    bool others = s->asked_time || s->now.transient;
    unsigned kept = 0;
    r->inputs = s->inputs | (others ? SPIN_INPUTS : 0);
    r->repeatable = !s->rec.too_many && !s->rec.timed && !s->too_many_earlier;
    for (unsigned i = 0; i < r->earlier_loads; i++)
        if (!is_among(r->load, r->loads, &r->earlier[i]))
            r->earlier[kept++] = r->earlier[i];
    r->earlier_loads = (uint8_t)kept;
}
