/* SPDX-License-Identifier: MIT
 *
 * Find loop heads, repetition and counters, and conclude a verdict.
 *
 * Every target of a backward jump is a loop head. Two states are kept of each head: that of the
 * last visit, and an anchor. The anchor is renewed at visits 1, 2, 4, 8, ..., so repetitions of any
 * period are found. A repetition is only a candidate. It is proven by recording another period (two
 * iterations, if it counts) with taints. They show what the branches and addresses of the loop
 * depend on.
 *
 * A candidate may have values that differ between two visits: flags, registers or stack words that
 * nothing reads (T_DEAD: reading one ends the proof), and counters (T_COUNTER), which change by the
 * same amount in each iteration. A counted loop is a wait if some branch depends on a load and on
 * no counter, and its other side leaves the loop. Exploration shows that: interpreted from there,
 * the thread must not return to the head as if nothing had happened. If it does, the branch is an
 * `if` in a computation.
 *
 * A loop that a time limit also ends repeats exactly, because the time is constant during an
 * interpretation. It is a wait if the other side of a deciding branch leaves it: it does not return
 * to the head, or returns with another time limit.
 */
#include "spin/internal.h"

enum {
    COUNTED_STREAK = 2, /* equal strides before a counted proof is tried: four visits */
    COUNTED_ATTEMPTS = 3,
    /* visits of other heads in a proof with rec.at_once */
    OTHERS = 16,
};

/* --- comparing states ------------------------------------------------------------------------- */

int spin_state_compare(const struct spin *s, const struct state *a, const struct state *b,
                       struct difference *d)
{
    int n = 0;
    if (a->stores != b->stores)
        return -1;
    if (a->xmm_written != b->xmm_written)
        return -1;
    for (uint32_t left = a->xmm_written; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (a->xmm[i][0] != b->xmm[i][0] || a->xmm[i][1] != b->xmm[i][1] ||
            ((a->xmm_taint[i] ^ b->xmm_taint[i]) & T_OPAQUE))
            return -1;
    }
    for (unsigned i = 0; i < 16; i++) {
        if ((a->low[i] ^ b->low[i] ^ a->high[i] ^ b->high[i]) & T_OPAQUE)
            return -1;
        if (a->r[i] == b->r[i])
            continue;
        if (n == DIFFERENCES)
            return -1;
        d[n++] = (struct difference){
            .granule = 0, .index = (uint8_t)i, .by = (int64_t)(b->r[i] - a->r[i])};
    }
    for (unsigned i = 0; i < a->stores; i++) {
        const struct granule *p = &a->store[i], *q = &b->store[i];
        if (p->address != q->address || p->mask != q->mask || ((p->taint ^ q->taint) & T_OPAQUE))
            return -1;
        if (p->value == q->value)
            continue;
        if (n == DIFFERENCES ||
            (b->transient && !spin_on_stack(s, p->address) && !s->config->alone))
            return -1; /* others see the change: not the counter of a wait */
        d[n++] = (struct difference){
            .granule = 1, .index = (uint8_t)i, .by = (int32_t)(q->value - p->value)};
    }
    return n;
}

static bool same_flags(const struct state *a, const struct state *b)
{
    return !((a->flags ^ b->flags) & F_ALL);
}

static const struct difference *expected(const struct head *h, unsigned granule, unsigned index)
{
    for (unsigned i = 0; i < h->differences; i++)
        if (h->difference[i].granule == granule && h->difference[i].index == index)
            return &h->difference[i];
    return NULL;
}

/* Returns whether the state is that at the beginning of the recording, except for the expected
 * changes after `turns` iterations. */
static bool repeated(struct spin *s, unsigned turns)
{
    const struct head *h = s->rec.head;
    const struct state *a = &h->last, *b = &s->now;
    struct difference d[DIFFERENCES];
    int n = spin_state_compare(s, a, b, d);
    if (n < 0)
        return false;
    for (int i = 0; i < n; i++) {
        const struct difference *e = s->rec.counted ? expected(h, d[i].granule, d[i].index) : NULL;
        if (!e)
            return false;
        int64_t by = (int64_t)((uint64_t)e->by * turns);
        if (!e->varies && d[i].by != (e->granule ? (int32_t)by : by))
            return false;
    }
    /* Every counter must have changed; a value that varies irregularly need not. */
    for (unsigned i = 0; s->rec.counted && i < h->differences; i++) {
        bool moved = h->difference[i].varies;
        for (int j = 0; j < n; j++)
            moved |=
                d[j].granule == h->difference[i].granule && d[j].index == h->difference[i].index;
        if (!moved)
            return false;
    }
    return true;
}

bool spin_restored(const struct spin *s)
{
    for (unsigned i = 0; s->now.transient && i < s->now.stores; i++) {
        const struct granule *g = &s->now.store[i];
        uint32_t is;
        if (spin_on_stack(s, g->address) || (s->config->alone && (g->taint & T_COUNTER)))
            continue;
        if (s->config->load(g->address, &is, 4))
            return false;
        for (unsigned k = 0; k < 4; k++)
            if ((g->mask >> k & 1) && ((is ^ g->value) >> 8 * k & 0xff))
                return false;
    }
    return true;
}

bool spin_may_be_site(const struct spin *s, uint64_t address)
{
    return !s->config->same_hi && !spin_in_delay(s, address) && !spin_in_critical(s, address) &&
           spin_restored(s);
}

/* --- recording -------------------------------------------------------------------------------- */

static void record(struct spin *s, struct head *h, uint64_t from, unsigned period, bool counted,
                   bool dead_flags)
{
    struct state *n = &s->now;
    uint8_t keep = T_OPAQUE | T_CLOCK;
    for (unsigned i = 0; i < 16; i++) {
        n->low[i] &= keep;
        n->high[i] &= keep;
        n->xmm_taint[i] &= keep;
    }
    n->cf_taint &= keep;
    n->flags_taint &= keep;
    if (dead_flags) {
        n->cf_taint |= T_DEAD;
        n->flags_taint |= T_DEAD;
    }
    for (unsigned i = 0; i < n->stores; i++) {
        n->store[i].taint &= keep;
        n->store[i].fresh = false;
    }
    for (unsigned i = 0; counted && i < h->differences; i++) {
        uint8_t t = h->difference[i].varies ? T_DEAD : T_COUNTER, k = h->difference[i].index;
        if (h->difference[i].granule) {
            n->store[k].taint |= t;
        } else {
            n->low[k] |= t;
            n->high[k] |= t;
        }
    }
    spin_state_copy(&h->last, n);
    spin_loads_are_earlier(s);
    s->rec = (struct recording){.on = true,
                                .counted = counted,
                                .head = h,
                                .back = from,
                                .period = counted ? 2 : period,
                                .left = counted ? 2 : period,
                                .first_step = s->steps};
}

static void describe(struct spin *s)
{
    struct spin_result *r = s->result;
    r->loads = (uint8_t)s->rec.loads;
    r->more_loads = s->rec.too_many;
    spin_describe_inputs(s);
    r->head = s->rec.head->address;
    r->loop = s->rec.loop;
    r->back = s->rec.back;
    r->pause = s->rec.pause;
    r->turn = (s->steps - s->rec.first_step) / (s->rec.counted ? 2 : 1);
    r->trail_length = (uint8_t)s->rec.trail_length;
    __builtin_memcpy(r->trail, s->rec.trail, sizeof r->trail);
}

/* Conclude the recording. Returns false if it proved nothing. */
static bool concluded(struct spin *s)
{
    struct recording *rec = &s->rec;
    bool decides = rec->deciding || rec->table;
    if (rec->failed || !repeated(s, rec->period) || !spin_restored(s))
        return false;
    /* With a limit, it may be work that is repeated. */
    if (rec->too_many && (rec->timed || (rec->counted && !s->config->alone))) {
        spin_stop(s, SPIN_UNKNOWN, SPIN_R_LOADS);
        return true;
    }
    describe(s);
    if (rec->timed && !decides && !rec->counted) { /* a delay */
        spin_stop(s, SPIN_NO_WAIT, SPIN_R_TIME);
        return true;
    }
    if (rec->timed && !rec->counted) {
        rec->deciding_first = rec->deciding;
        rec->explore = true;
        return true;
    }
    if (!rec->counted || spin_only_dead(rec->head)) {
        s->pauses = rec->pauses;
        spin_stop(s, rec->pauses && !decides ? SPIN_PAUSE_ONLY : SPIN_ENDLESS, SPIN_R_NONE);
        return true;
    }
    spin_describe_counter(s);
    uint64_t n = s->result->remaining;
    bool known = n != SPIN_TURNS_UNKNOWN,
         ends = known && n <= (s->budget - s->steps) / (s->result->turn ? s->result->turn : 1);
    if (decides && !rec->walks && !ends) {
        rec->explore = true;
        return true;
    }
    /* A delay, a reduction, a walk, or a wait that is nearly over. If the loop ends soon, interpret
     * the code behind it. */
    rec->head->attempts = COUNTED_ATTEMPTS;
    /* A walk that only a load ends may repeat itself: a search of the others' queues, again and
     * again. Then its state repeats. */
    bool may_go_round = rec->walks && decides && n == SPIN_TURNS_UNBOUNDED;
    if (may_go_round && !s->goes_round) {
        s->goes_round = true;
        s->budget *= SPIN_SEARCH;
    }
    if (!known || may_go_round || spin_delay_learn(s, rec->back) || ends)
        return false;
    if (rec->pauses && !rec->walks)
        spin_stop(s, SPIN_PAUSE_ONLY, SPIN_R_DELAY);
    else
        spin_stop(s, SPIN_NO_WAIT, SPIN_R_DELAY);
    return true;
}

/* --- heads ------------------------------------------------------------------------------------ */

static struct head *head_of(struct spin *s, uint64_t address)
{
    for (unsigned i = 0; i < s->heads; i++)
        if (s->head[i].address == address)
            return &s->head[i];
    struct head *h = &s->head[s->heads < HEADS ? s->heads++ : s->next_head++ % HEADS];
    h->address = address;
    h->visits = 0;
    h->attempts = h->streak = h->differences = 0;
    h->is_delay = false;
    return h;
}

/* Compare with the last visit. Returns true if the same values have differed often enough. */
static bool counts(struct spin *s, struct head *h)
{
    struct difference d[DIFFERENCES];
    int n = spin_state_compare(s, &h->last, &s->now, d);
    bool alike = n > 0 && n == h->differences;
    for (int i = 0; alike && i < n; i++)
        alike = d[i].granule == h->difference[i].granule && d[i].index == h->difference[i].index;
    if (!alike) {
        h->streak = 0;
        h->differences = (uint8_t)(n > 0 ? n : 0);
        for (int i = 0; i < n; i++)
            h->difference[i] = d[i];
        return false;
    }
    for (int i = 0; i < n; i++) {
        h->difference[i].varies |= d[i].by != h->difference[i].by;
        h->difference[i].by = d[i].by;
    }
    if (h->streak < 255)
        h->streak++;
    return h->streak >= COUNTED_STREAK && h->attempts < COUNTED_ATTEMPTS;
}

static void at_recorded_head(struct spin *s, uint64_t from)
{
    struct recording *rec = &s->rec;
    if (s->exploring) {
        if (s->exploring == EXPLORE_AFTER)
            s->exploring = spin_came_back(s);
        return;
    }
    rec->left--;
    rec->back = from;
    if (rec->counted && rec->left == 1) {
        rec->deciding_first = rec->deciding;
        if (!rec->failed && repeated(s, 1))
            return;
        rec->failed = true;
    } else if (rec->left && !rec->failed) {
        return;
    }
    struct head *h = rec->head;
    bool done = concluded(s);
    rec->on = false;
    if (done)
        return;
    h->attempts++;
    h->streak = h->differences = 0;
    spin_state_copy(&h->last, &s->now);
    spin_state_copy(&h->anchor, &s->now);
    h->visits = h->anchor_visit = 1;
}

static void give_up(struct spin *s)
{
    struct head *h = s->rec.head;
    s->rec.on = false;
    if (s->rec.at_once) { /* the head counts its next visit as the first */
        h->visits = 0;
        h->attempts = 1;
    }
}

void spin_at_head(struct spin *s, uint64_t from)
{
    if (s->stop || s->only_pauses)
        return;
    struct head *delay = spin_delay_at(s, s->now.rip);
    if (delay) {
        spin_delay_turn(s, delay);
        return;
    }
    if (s->rec.on) {
        if (s->rec.head->address == s->now.rip)
            at_recorded_head(s, from);
        else if (!s->exploring && (s->rec.failed || (s->rec.at_once && ++s->rec.others == OTHERS)))
            give_up(s); /* disproven, or an inner loop may be a delay */
        if (s->rec.on || s->exploring || s->rec.explore)
            return;
        if (s->rec.head->address == s->now.rip)
            return;
    }
    struct head *h = head_of(s, s->now.rip);
    if (++h->visits == 1) {
        h->anchor_visit = 1;
        if (h->address == s->config->head && !h->attempts) {
            record(s, h, from, 1, false, true);
            s->rec.at_once = true;
            return;
        }
        spin_state_copy(&h->anchor, &s->now);
        spin_state_copy(&h->last, &s->now);
        return;
    }
    struct difference d[DIFFERENCES];
    if (spin_state_compare(s, &h->anchor, &s->now, d) == 0) {
        record(s, h, from, h->visits - h->anchor_visit, false, !same_flags(&h->anchor, &s->now));
        return;
    }
    if (counts(s, h)) {
        record(s, h, from, 1, true, !same_flags(&h->last, &s->now));
        return;
    }
    spin_state_copy(&h->last, &s->now);
    if (!(h->visits & (h->visits - 1))) {
        h->anchor_visit = h->visits;
        spin_state_copy(&h->anchor, &s->now);
    }
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Note the instructions of an iteration that are in the loop's own function: those at the highest
 * stack pointer. Functions that the loop calls are shared with other code. */
static void note_trail(struct spin *s, uint64_t address)
{
    struct recording *rec = &s->rec;
    uint64_t rsp = s->now.r[RSP];
    if (rsp < rec->outermost)
        return;
    if (rsp > rec->outermost) {
        rec->outermost = rsp;
        rec->loop = address;
        rec->trail_length = 0;
    }
    if (address < rec->loop)
        rec->loop = address;
    if (!spin_may_be_site(s, address))
        return;
    if (rec->trail_length < SPIN_TRAIL)
        rec->trail[rec->trail_length++] = address;
}

void spin_step(struct spin *s)
{
    const struct op *op = spin_decode(s, s->now.rip);
    if (!op)
        return;
    s->steps++;
    if (s->rec.on && !s->exploring && s->rec.left == s->rec.period)
        note_trail(s, op->address);
    spin_execute(s, op);
}

void spin_advance(struct spin *s)
{
    if (s->steps >= s->budget) {
        spin_stop(s, SPIN_UNKNOWN, SPIN_R_BUDGET);
        return;
    }
    spin_step(s);
    if (!s->rec.explore)
        return;
    uint32_t pauses = s->pauses;
    bool leaves = spin_some_way_leaves(s);
    s->pauses = pauses;
    if (leaves) {
        s->pauses = s->rec.pauses;
        spin_stop(s, s->rec.counted ? SPIN_COUNTED : SPIN_ENDLESS, SPIN_R_NONE);
    } else if (!s->rec.counted) {
        /* at a constant time, the thread would never leave */
        spin_stop(s, SPIN_NO_WAIT, SPIN_R_TIME);
    } else {
        /* A computation that reads a flag on its way. Continue from the beginning of the
         * recording. */
        s->rec.head->attempts = COUNTED_ATTEMPTS;
        s->rec.head->streak = 0;
    }
}

void spin_begin(struct spin *s, const struct spin_config *c, const struct spin_registers *from,
                struct spin_result *r)
{
    *r = (struct spin_result){.verdict = SPIN_UNKNOWN};
    /* Initialise only what is read: empty tables need no more. */
    s->config = c;
    s->result = r;
    s->fs_base = from->fs_base;
    s->gs_base = from->gs_base;
    s->xmm_first = from->xmm;
    s->stack_lo = c->stack_lo;
    s->stack_hi = c->stack_hi;
    if (!s->stack_hi) {
        uint64_t rsp = from->r[RSP];
        s->stack_lo = rsp > 16384 ? rsp - 16384 : 0;
        s->stack_hi = rsp < ~0ull - 65536 ? rsp + 65536 : rsp;
    }
    s->budget = c->budget ? c->budget : SPIN_DEFAULT_BUDGET;
    if (s->budget > 1u << 20)
        s->budget = 1u << 20;
    s->steps = s->pauses = s->outside_stores = s->rewrites = 0;
    s->stop = s->has_delays = s->only_pauses = s->goes_round = false;
    s->hint = s->critical = s->critical_bytes = 0;
    s->exploring = EXPLORE_NO;
    s->source = (struct flag_source){0};
    s->rec = (struct recording){0};
    s->inputs = s->written = 0;
    s->asked_time = s->too_many_earlier = false;
    s->heads = s->next_head = 0;
    s->run++;
    for (unsigned i = 0; !c->same_hi && i < OPS; i++)
        s->op[i].address = 0;
    ZydisDecoderInit(&s->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);

    struct state *n = &s->now;
    __builtin_memcpy(n->r, from->r, sizeof n->r);
    n->rip = from->rip;
    n->flags = (uint32_t)from->flags;
    n->cf_taint = n->flags_taint = 0;
    n->stores = 0;
    n->transient = false;
    n->xmm_written = 0;
    for (unsigned i = 0; i < 16; i++) {
        n->low[i] = n->high[i] = 0;
        spin_xmm_begin(s, i);
    }
}

/* Returns the number of cache lines written outside the stack. */
static uint8_t lines_written(const struct spin *s)
{
    uint8_t n = 0;
    for (unsigned i = 0; i < s->now.stores; i++) {
        uint64_t line = s->now.store[i].address / 64;
        unsigned j = 0;
        while (s->now.store[j].address / 64 != line)
            j++;
        n += j == i && !spin_on_stack(s, s->now.store[i].address);
    }
    return n;
}

enum spin_verdict spin_interpret(const struct spin_config *c, const struct spin_registers *from,
                                 struct spin_scratch *scratch, struct spin_result *r)
{
    struct spin *s = (struct spin *)(void *)scratch;
    spin_begin(s, c, from, r);
    while (!s->stop)
        spin_advance(s);
    /* For whatever reason it ended: a thread that is about to pause this often may yield. */
    if ((r->verdict == SPIN_UNKNOWN || r->verdict == SPIN_NO_WAIT) && s->pauses >= SPIN_MIN_PAUSES)
        r->verdict = SPIN_PAUSE_ONLY;
    if (r->verdict == SPIN_UNKNOWN && s->now.transient && r->reason == SPIN_R_BUDGET) {
        r->verdict = SPIN_NO_WAIT;
        r->reason = SPIN_R_STORE;
    }
    r->transient = s->now.transient;
    if (r->verdict != SPIN_ENDLESS && r->verdict != SPIN_COUNTED)
        r->loads = 0;
    r->lines = lines_written(s);
    r->rip = s->now.rip;
    if (c->find_pauses && !r->head)
        spin_find_pauses(s, c, from);
    r->steps = s->steps;
    r->pauses = s->pauses;
    return r->verdict;
}
