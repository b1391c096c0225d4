/* SPDX-License-Identifier: MIT
 *
 * Conditions for ORBIT_SPINS, beyond the interpreter's verdict that a wait has no end:
 *
 *   - The sample lies on the orbit. At some moment of an iteration, the registers are those of the
 *     sample. Each stored byte of the stack has, at some moment, its value in the snapshot.
 *     Otherwise the thread only reaches a wait later, and works at the sample.
 *   - A branch or a jump table depends on a loaded value. A loop without one waits for nobody.
 *   - The loop stores nothing outside the stack, except by locked instructions that change nothing.
 *     A loop that fills memory with the values already there would also be an orbit.
 *   - An iteration has at most LONGEST_TURN instructions.
 *   - The loaded words still have their values in the snapshot: the thread ran on after the sample.
 */
#include "orbit.h"

#include "spin/internal.h"

enum {
    LONGEST_TURN = 512, /* instructions, without those of skipped delay iterations */
    WORKS_VISITS = 2,
    BUDGET = 2000, /* instructions of one attempt, as in spin/probe.c */
};

struct judgement {
    struct spin_scratch scratch;
    struct spin *s; /* points into `scratch` */
    struct spin_config config;
    struct spin_registers from;
    struct spin_result result;
    /* state where the proof ended; state at the last visit of the sample's instruction */
    struct state start, visit;
    /* for each granule, a bit for each byte that has had its value in the snapshot */
    uint8_t met[STORES];
    /* the loop's identity: highest stack pointer of an iteration, and lowest instruction there */
    uint64_t head, outermost;
};
_Static_assert(sizeof(struct judgement) <= ORBIT_SCRATCH, "scratch");

/* A non-canonical address: loads from it fail. */
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

/* The interpreter skips delays to their last iteration. So accept any value of their counters. */
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

/* Interpret one more iteration. Returns whether the sample lies on it. Pre: the interpretation
 * stopped at the end of a proof, in the loop's head. */
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
        s->stop = false; /* the interpreter may prove the same loop again on the way */
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
        /* Words that the loop stores itself change within an iteration: do not compare them. */
        if (!own && (memory->again(l->address, &is, l->bytes) || is != l->value))
            return false;
    }
    return true;
}

/* Pre: the interpretation found an orbit. */
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
    /* The thread works if its state had changed at each return to the sample's instruction. An
     * unchanged state proves nothing: the wait may have ended by now, and the thread may wait at
     * the same place in its next round. */
    return moved >= WORKS_VISITS && !stood ? ORBIT_WORKS : ORBIT_UNKNOWN;
}
