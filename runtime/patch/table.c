/* SPDX-License-Identifier: MIT
 *
 * Jump tables. Compilers write them as 32-bit differences to the table's own start, whose address a
 * lea takes. The end of a table is unknown. Its entries are followed up to the first that leads to
 * where no functions are. In data that is no table, that comes early. Before that, entries may be
 * those of the next tables, which count from elsewhere. Of those
 *
 *   - some lead into the middle of an instruction, which no entry does;
 *   - most lead into another function than that of the lea. Only the two halves of a function that
 *     the compiler has split share a table.
 *
 * Two functions of the unwind tables count as halves of one if a direct jump leads from one into
 * the other, or if nothing calls or names the second one.
 */
#include "target.h"

enum { MOST = 65536 /* entries of a table */, PAIRS = 256 };

static int32_t int32_at(uintptr_t p)
{
    int32_t v;
    __builtin_memcpy(&v, (const void *)p, 4);
    return v;
}

/* --- functions that may share a table with one that has sites --------------------------------- */

static void join(struct marker *m, size_t function)
{
    m->joined[function / 8] |= (uint8_t)(1u << (function % 8));
}

static bool is_call(uintptr_t at, const struct insn *in)
{
    enum { CALL = 0xe8, BYTES = 5 };
    return in->len >= BYTES && ((const uint8_t *)at)[in->len - BYTES] == CALL;
}

/* Join the functions that [lo, hi) jumps to. */
static void join_targets(struct marker *m, uintptr_t lo, uintptr_t hi)
{
    struct insn in;
    struct fde f;
    for (uintptr_t p = lo; p < hi && code_decode(p, hi, &in); p += in.len)
        if (in.relative && !is_call(p, &in) && eh_around(m->o, in.target, &f))
            join(m, f.index);
}

void table_prepare(struct marker *m)
{
    enum { SHORT = 130 }; /* reach of a short jump, of which table_join is not notified */
    const struct object *o = m->o;
    uintptr_t done = 0;
    struct fde f;
    for (size_t i = 0; i < o->sites; i++) {
        const struct site *s = &o->site[i];
        if (s->fn_lo >= s->fn_hi || s->fn_lo == done || !eh_around(o, s->fn_lo, &f))
            continue;
        done = s->fn_lo;
        join_targets(m, s->fn_lo, s->fn_hi);
        size_t k = f.index;
        for (; k > 0 && eh_start(o, k) + SHORT > f.lo; k--)
            join(m, k - 1);
        for (k = f.index; k < o->eh_count && eh_start(o, k) < f.hi + SHORT; k++)
            join(m, k);
    }
}

void table_join(struct marker *m, uintptr_t at, uintptr_t t)
{
    uintptr_t lo, hi;
    struct insn in;
    if (code_sweep(m->o, at, &lo, &hi) && code_boundary(m->o, at) && code_decode(at, hi, &in) &&
        !(in.relative && in.target == t))
        return;
    if (m->function < m->o->eh_count)
        join(m, m->function);
}

void table_joined(struct marker *m)
{
    m->any_joins = !m->o->eh_count;
    for (size_t i = 0; i < m->o->sites; i++)
        m->any_joins |= m->o->site[i].fn_lo && !m->o->site[i].called;
}

/* --- following the entries -------------------------------------------------------------------- */

/* Handle t, an entry of a table that `lea` refers to. */
static void entry(struct marker *m, uintptr_t lea, uintptr_t t)
{
    struct fde f;
    bool known = eh_around(m->o, lea, &f);
    if (known && (t < f.lo || t >= f.hi) && m->strays < TARGET_STRAYS)
        m->stray[m->strays++] = (struct stray){t, lea};
    else
        target_found(m->o, t);
}

void table_walk(struct marker *m, uintptr_t lea, uintptr_t base)
{
    struct object *o = m->o;
    bool joined = m->joined[m->function / 8] >> (m->function % 8) & 1;
    if (!joined && !m->any_joins && lea < m->function_hi)
        return; /* a table of other functions */
    struct table *walked = &m->table[(base >> 2 ^ base >> 18) % TARGET_TABLES];
    if (walked->base == base && walked->function == m->function)
        return;
    *walked = (struct table){base, m->function};
    for (unsigned i = 0; i < o->segments; i++) {
        const struct segment *s = &o->segment[i];
        if (base < s->lo || base >= s->hi)
            continue;
        uintptr_t p = base;
        for (unsigned n = 0; n < MOST && s->hi - p >= 4; n++, p += 4) {
            uintptr_t t = base + (uintptr_t)(intptr_t)int32_at(p);
            if (t < m->lo || t >= m->hi)
                break;
            if (target_near(m, t) && !target_inside_instruction(m, t))
                entry(m, lea, t);
        }
    }
}

/* Return whether a direct jump of f leads into g, or f cannot be decoded. */
static bool jumps_into(const struct fde *f, const struct fde *g)
{
    struct insn in;
    for (uintptr_t p = f->lo; p < f->hi; p += in.len) {
        if (!code_decode(p, f->hi, &in))
            return true;
        if (in.relative && !is_call(p, &in) && in.target >= g->lo && in.target < g->hi)
            return true;
    }
    return false;
}

/* Return whether the function of the first site in g is called or named; true if g has no site. */
static bool is_called(const struct object *o, const struct fde *g)
{
    for (size_t i = 0; i < o->sites; i++)
        if (o->site[i].syscall >= g->lo && o->site[i].syscall < g->hi)
            return o->site[i].fn_lo == g->lo && o->site[i].called;
    return true;
}

void table_decide(struct marker *m)
{
    /* results for pairs of functions */
    static struct pair {
        uintptr_t f, g;
        bool apart;
    } pair[PAIRS];
    __builtin_memset(pair, 0, sizeof pair);
    for (size_t i = 0; i < m->strays; i++) {
        struct fde f, g;
        uintptr_t t = m->stray[i].target;
        if (!eh_around(m->o, m->stray[i].lea, &f) || !eh_around(m->o, t, &g)) {
            target_found(m->o, t);
            continue;
        }
        struct pair *p = &pair[(f.lo ^ f.lo >> 8 ^ g.lo >> 4) % PAIRS];
        if (p->f != f.lo || p->g != g.lo)
            *p = (struct pair){f.lo, g.lo,
                               is_called(m->o, &g) && !jumps_into(&g, &f) && !jumps_into(&f, &g)};
        if (!p->apart)
            target_found(m->o, t);
    }
}
