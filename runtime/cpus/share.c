/* SPDX-License-Identifier: MIT */
#include "cpus/share.h"

#include <stdbool.h>

enum {
    CPU = 1 << 16,         /* units per CPU */
    LOST = SHARE_PROGRAMS, /* units lost by rounding, at most */
    GOLDEN = 40503,        /* units, by the golden ratio: its multiples are spread evenly */
    NICE_0 = 1024,         /* weight of nice 0 */
};

/* Static, because the monitor's stack is small. One caller at a time. */
static struct part {
    uint64_t want, got; /* units */
    uint64_t weight;
    bool has_all;
} part[SHARE_PROGRAMS], group[SHARE_PROGRAMS], member[SHARE_PROGRAMS];

/* Give each part what it wants, but no more than its weight's part of what the others leave of
 * `pool`. */
static void fill(uint64_t pool, struct part *p, uint32_t n)
{
    for (bool changed = true; changed;) {
        uint64_t left = pool, weights = 0;
        for (uint32_t i = 0; i < n; i++) {
            left -= p[i].has_all ? p[i].want : 0;
            weights += p[i].has_all ? 0 : p[i].weight;
        }
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            if (p[i].has_all)
                continue;
            p[i].got = left * p[i].weight / weights;
            if (p[i].want <= p[i].got) {
                p[i].got = p[i].want;
                p[i].has_all = true;
                changed = true;
            }
        }
    }
}

static uint32_t first_of_group(const struct share_claim *claim, uint32_t i)
{
    uint32_t first = 0;
    while (claim[first].group != claim[i].group)
        first++;
    return first;
}

/* Set part[i] to what program i gets. */
static void share_out(uint32_t pool, const struct share_claim *claim, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        group[i] = (struct part){0};
    for (uint32_t i = 0; i < n; i++) {
        struct part *g = &group[first_of_group(claim, i)];
        g->want += (uint64_t)claim[i].want * CPU;
        if (!g->weight)
            g->weight = claim[i].group_weight;
    }
    for (uint32_t i = 0; i < n; i++)
        group[i].has_all = !group[i].weight; /* it is not the first of a group */
    fill((uint64_t)pool * CPU, group, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t members = 0;
        if (first_of_group(claim, i) != i)
            continue;
        for (uint32_t k = i; k < n; k++)
            if (claim[k].group == claim[i].group)
                member[members++] =
                    (struct part){.want = (uint64_t)claim[k].want * CPU, .weight = claim[k].weight};
        fill(group[i].got, member, members);
        members = 0;
        for (uint32_t k = i; k < n; k++)
            if (claim[k].group == claim[i].group)
                part[k] = member[members++];
    }
}

/* Return what p gets in slots, in units. `other` has a whole CPU, although its part is less. So p
 * has a slot on that CPU, too, for a part of the time. The kernel then shares the CPU by weight,
 * and the weights are to each other as the parts. p has the slot for as long as it needs to get its
 * own part. */
static uint64_t beside_crowd(const struct part *p, const struct part *other)
{
    uint64_t uneven = p->got % CPU, time = uneven * (p->got + other->got) / p->got;
    return p->got - uneven + (time < CPU - 1 ? time : CPU - 1);
}

uint32_t share_of(uint32_t pool, const struct share_claim *claim, uint32_t n, uint32_t self,
                  uint32_t turn)
{
    uint64_t wanted = 0, before = 0, lost = (uint64_t)pool * CPU, offset = turn * GOLDEN % CPU;
    uint32_t heaviest = n; /* program with the largest part below one CPU; n: none */
    for (uint32_t i = 0; i < n; i++)
        wanted += claim[i].want;
    if (wanted <= pool) {
        uint32_t most = claim[self].want + pool - (uint32_t)wanted;
        return most ? most : 1;
    }
    share_out(pool, claim, n);
    for (uint32_t i = 0; i < n; i++)
        lost -= part[i].got;
    for (uint32_t i = 0; i < n; i++) {
        /* the first program that wants more gets what fill rounded off */
        if (part[i].got < part[i].want) {
            part[i].got += lost;
            lost = 0;
        }
        if (part[i].want && part[i].got + LOST < CPU &&
            (heaviest == n || part[i].got > part[heaviest].got))
            heaviest = i;
        before += i < self ? part[i].got : 0;
    }
    /* Put all parts on a line, and count the CPU boundaries in this program's part. So all programs
     * together get as many CPUs as there are. Each turn shifts the line. */
    uint64_t from = before + offset, mine = part[self].got;
    if (heaviest != n) {
        from = offset;
        mine = mine > CPU ? beside_crowd(&part[self], &part[heaviest]) : CPU;
    }
    uint32_t whole = (uint32_t)((from + mine) / CPU - from / CPU);
    return whole ? whole : 1;
}

uint32_t share_weight(int32_t nice)
{
    uint32_t weight = NICE_0;
    for (; nice > 0 && weight > 3; nice--)
        weight -= weight / 5;
    for (; nice < 0 && weight < 64 * NICE_0; nice++)
        weight += weight / 4;
    return weight;
}
