/* SPDX-License-Identifier: MIT
 *
 * What is asked beyond the interpreter's verdict that a wait has no end:
 *
 *   - The sample is part of it: at some moment of a turn the registers are those of the sample, and
 *     each word of the stack that has been stored is, at some moment, what the snapshot holds.
 *     Otherwise the thread only comes to a wait later, and what it does at the sample is work.
 *   - A branch or a jump table depends on what was loaded. A loop without that waits for nobody.
 *   - It stores nothing outside of the stack, but for locked instructions that change nothing. A
 *     loop that fills memory with what is there already would be an orbit as well.
 *   - A turn is short.
 *   - The loaded words still are what they were in the snapshot. The thread has gone on running
 *     since the sample.
 */
#include "orbit.h"

#include "spin/internal.h"

enum {
    LONGEST_TURN = 512, /* instructions, without those of delays that are brought forward */
    WORKS_VISITS = 2,
    BUDGET = 2000, /* instructions of an attempt, as in spin/probe.c */
};

struct judgement {
    struct spin_scratch scratch;
    struct spin *s; /* in it */
    struct spin_config config;
    struct spin_registers from;
    struct spin_result result;
    /* where the proof ended; at the last visit of the sample's instruction */
    struct state start, visit;
    /* bytes of a granule that have been seen as they are in the snapshot */
    uint8_t met[STORES];
    /* where a turn's stack is shortest, and there the lowest address: what identifies the loop */
    uint64_t head, outermost;
};
_Static_assert(sizeof(struct judgement) <= ORBIT_SCRATCH, "scratch");

/* Nothing is mapped there. */
static const uint64_t NOWHERE = 1ull << 62;

static bool at_sample(const struct judgement *j)
{
    return j->s->now.rip == j->from.rip &&
           !__builtin_memcmp(j->s->now.r, j->from.r, sizeof j->from.r);
}

static void meet_memory(struct judgement *j)
{
    const struct spin *s = j->s;
    for (unsigned i = 0; i < s->now.stores; i++) {
        const struct granule *g = &s->now.store[i];
        uint8_t is[4];
        if (!(g->mask & ~j->met[i]) || s->config->load(g->address, is, 4))
            continue;
        for (unsigned k = 0; k < 4; k++)
            j->met[i] |= (uint8_t)((is[k] == (g->value >> 8 * k & 0xff)) << k);
    }
}

/* Counters of delays are brought forward to their last turn: the snapshot may hold any of them. */
static void meet_delays(struct judgement *j)
{
    const struct spin *s = j->s;
    for (unsigned i = 0; s->has_delays && i < s->heads; i++) {
        const struct delay *d = &s->head[i].delay;
        for (unsigned k = 0; s->head[i].is_delay && k < d->counters; k++)
            if (d->counter[k].granule)
                j->met[d->counter[k].index] = 15;
    }
}

static bool memory_met(const struct judgement *j)
{
    const struct spin *s = j->s;
    for (unsigned i = 0; i < s->now.stores; i++)
        if (s->now.store[i].mask & ~j->met[i])
            return false;
    return true;
}

static void meet_head(struct judgement *j)
{
    const struct state *now = &j->s->now;
    if (now->r[RSP] < j->outermost || (now->r[RSP] == j->outermost && now->rip >= j->head))
        return;
    j->outermost = now->r[RSP];
    j->head = now->rip;
}

/* Pre: the interpretation was stopped at the end of a proof, in the loop's head. Goes around once
 * more. Post: the sample lies on the way. */
static bool passes_sample(struct judgement *j)
{
    struct spin *s = j->s;
    struct difference d[DIFFERENCES];
    uint32_t limit = s->steps + LONGEST_TURN;
    bool met = false;
    spin_state_copy(&j->start, &s->now);
    __builtin_memset(j->met, 0, sizeof j->met);
    j->head = UINT64_MAX;
    j->outermost = 0;
    s->budget = limit + 1;
    do {
        met |= at_sample(j);
        meet_memory(j);
        meet_head(j);
        s->stop = false; /* it proves the same again on its way */
        spin_advance(s);
        if ((s->stop && s->result->reason != SPIN_R_NONE) || s->steps > limit)
            return false;
    } while (s->now.rip != j->start.rip || spin_state_compare(s, &j->start, &s->now, d));
    meet_delays(j);
    return met && memory_met(j);
}

static bool words_stay(const struct judgement *j, const struct orbit_memory *memory)
{
    const struct spin *s = j->s;
    for (unsigned i = 0; i < j->result.loads; i++) {
        const struct spin_load *l = &j->result.load[i];
        uint64_t is = 0;
        bool own = false;
        for (unsigned k = 0; k < s->now.stores; k++)
            own |= s->now.store[k].address + 4 > l->address &&
                   s->now.store[k].address < l->address + l->bytes;
        /* What it stores itself differs from moment to moment. */
        if (!own && (memory->again(l->address, &is, l->bytes) || is != l->value))
            return false;
    }
    return true;
}

/* Pre: the interpretation has found an orbit. */
static enum orbit judge_orbit(struct judgement *j, const struct orbit_memory *memory)
{
    struct spin *s = j->s;
    struct spin_result proof = j->result;
    bool decides = s->rec.deciding || s->rec.table;
    if (!passes_sample(j) || s->rewrites || s->now.transient)
        return ORBIT_UNKNOWN;
    j->result = proof;
    if (!decides)
        return ORBIT_WORKS;
    return words_stay(j, memory) ? ORBIT_SPINS : ORBIT_UNKNOWN;
}

static bool has_segment(const struct spin *s)
{
    for (unsigned i = 0; i < OPS; i++)
        if (s->op[i].address && s->op[i].segment == 1)
            return true;
    return false;
}

enum orbit orbit_judge(const struct orbit_memory *memory, const uint64_t registers[18],
                       uint64_t fs_base, void *scratch, struct orbit_attempt *a)
{
    static const uint8_t order[16] = {RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP,
                                      8,   9,   10,  11,  12,  13,  14,  15};
    struct judgement *j = scratch;
    struct spin *s = j->s = (struct spin *)(void *)&j->scratch;
    struct difference d[DIFFERENCES];
    uint32_t moved = 0, stood = 0;
    for (unsigned i = 0; i < 16; i++)
        j->from.r[order[i]] = registers[i];
    j->from.rip = registers[16];
    j->from.flags = registers[17];
    j->from.fs_base = fs_base ? fs_base : NOWHERE;
    j->from.gs_base = NOWHERE;
    j->from.xmm = NULL;
    j->config =
        (struct spin_config){.load = memory->load, .fetch = memory->fetch, .budget = BUDGET};
    spin_begin(s, &j->config, &j->from, &j->result);
    spin_state_copy(&j->visit, &s->now);
    while (!s->stop) {
        spin_advance(s);
        if (s->now.rip != j->from.rip || s->stop)
            continue;
        if (spin_state_compare(s, &j->visit, &s->now, d))
            moved++;
        else
            stood++;
        spin_state_copy(&j->visit, &s->now);
    }
    *a = (struct orbit_attempt){.steps = s->steps, .uses_fs = has_segment(s)};
    if ((j->result.verdict == SPIN_ENDLESS || j->result.verdict == SPIN_PAUSE_ONLY) &&
        j->result.reason == SPIN_R_NONE) {
        enum orbit verdict = judge_orbit(j, memory);
        a->head = j->head;
        return verdict;
    }
    /* Each time that it came back something had gone on. One that left its loop, because the wait
     * is over by now, and came to the same loop in its next round would be seen to stand still
     * there. */
    return moved >= WORKS_VISITS && !stood ? ORBIT_WORKS : ORBIT_UNKNOWN;
}
