/* SPDX-License-Identifier: MIT
 *
 * Shared by target.c and table.c, which mark what may be jumped to.
 */
#ifndef LISSOM_PATCH_TARGET_H
#define LISSOM_PATCH_TARGET_H

#include "internal.h"

#define TARGET_LINE 64ul
#define TARGET_TABLES 65536u /* jump tables remembered */
#define TARGET_STRAYS 16384u /* entries of tables that lead out of their function */

struct marker {
    struct object *o;
    /* A bit for each TARGET_LINE bytes of code. lines: with a site or the start of its function in
     * it; functions: with a part of such a function in it. */
    uint8_t *lines, *functions;
    size_t lines_bytes;
    /* bounds of all functions: less than code_lo to code_hi if rodata is executable too */
    uintptr_t lo, hi;
    /* the last FDE that starts at or before the current byte, and its end */
    size_t function;
    uintptr_t function_hi;
    uint8_t *joined; /* a bit for each FDE: a function with sites, or perhaps a half of one */
    size_t joined_bytes;
    bool any_joins; /* functions with sites may be halves of unknown ones */
    /* direct-mapped: tables walked already, since many lea name the same one */
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

/* Return whether t is in a line with a site or with the start of its function. */
static inline bool target_near(const struct marker *m, uintptr_t t)
{
    return target_in(m, m->lines, t);
}

/* Advance to the function of p. Pre: p is not before the last one. */
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

/* Mark t: it may be jumped to. */
void target_found(struct object *o, uintptr_t t);
/* Return whether t is in the middle of an instruction; false if its function does not decode. */
bool target_inside_instruction(struct marker *m, uintptr_t t);

/* Note functions that may be halves of those with sites, as far as those show it. */
void table_prepare(struct marker *m);
/* Note that the jump at `at` leads to t. Pre: m->function is that of `at`. */
void table_join(struct marker *m, uintptr_t at, uintptr_t t);
/* Note that all jumps, and site.called, are known. */
void table_joined(struct marker *m);
/* Mark where the entries of a jump table at `base` lead to. The instruction at `lea` takes its
 * address. Pre: m->function is that of `lea`. */
void table_walk(struct marker *m, uintptr_t lea, uintptr_t base);
/* Mark what table_walk has deferred, as far as it belongs to a table. */
void table_decide(struct marker *m);

#endif
