/* SPDX-License-Identifier: MIT
 *
 * What target.c and table.c share while they mark what may be jumped to.
 */
#ifndef LISSOM_PATCH_TARGET_H
#define LISSOM_PATCH_TARGET_H

#include "internal.h"

#define TARGET_LINE 64ul
#define TARGET_TABLES 65536u /* jump tables remembered */
#define TARGET_STRAYS 16384u /* entries of tables that lead out of their function */

struct marker {
    struct object *o;
    /* a bit for each TARGET_LINE bytes of code: with a site or the start of its function in it;
     * with any of its function in it */
    uint8_t *lines, *functions;
    size_t lines_bytes;
    /* where functions are: less than code_lo to code_hi if rodata is executable too */
    uintptr_t lo, hi;
    /* of the byte that is looked at: the last FDE that starts at or before it, and where it ends */
    size_t function;
    uintptr_t function_hi;
    uint8_t *joined; /* a bit for each FDE: a function with sites, or perhaps a half of one */
    size_t joined_bytes;
    bool any_joins; /* those with sites may be halves of functions that are not known */
    /* direct-mapped: those walked already, since many lea name the same one */
    struct table {
        uintptr_t base;
        size_t function;
    } *table;
    struct stray {
        uintptr_t target, lea;
    } *stray;
    size_t strays;
};

static inline bool target_in(const struct marker *m, const uint8_t *lines, uintptr_t t)
{
    uintptr_t line = (t - m->o->code_lo) / TARGET_LINE;
    return t >= m->o->code_lo && t < m->o->code_hi && (lines[line / 8] >> (line % 8) & 1);
}

/* Whether t is in a line with a site or with the start of its function. */
static inline bool target_near(const struct marker *m, uintptr_t t)
{
    return target_in(m, m->lines, t);
}

/* Moves on to the function of p. Pre: p is not before the last one. */
static inline void target_move(struct marker *m, uintptr_t p)
{
    const struct object *o = m->o;
    size_t at = m->function;
    struct fde f;
    while (at + 1 < o->eh_count && eh_start(o, at + 1) <= p)
        at++;
    if (at == m->function && m->function_hi)
        return;
    m->function = at;
    m->function_hi = at < o->eh_count && eh_at(o, at, &f) ? f.hi : 1;
}

/* t may be jumped to. */
void target_found(struct object *o, uintptr_t t);
/* Whether t is in the middle of an instruction. False also where functions do not decode. */
bool target_inside_instruction(struct marker *m, uintptr_t t);

/* Notes which functions may be halves of those with sites, as far as those tell. */
void table_prepare(struct marker *m);
/* The jump at `at` leads to t. Pre: m->function is that of `at`. */
void table_join(struct marker *m, uintptr_t at, uintptr_t t);
/* All jumps are known, and site.called. */
void table_joined(struct marker *m);
/* The instruction at `lea` takes the address `base`: marks where the entries of a jump table that
 * begins there lead to. Pre: m->function is that of `lea`. */
void table_walk(struct marker *m, uintptr_t lea, uintptr_t base);
/* Marks what table_walk has put off. */
void table_decide(struct marker *m);

#endif
