/* SPDX-License-Identifier: MIT
 *
 * What might be jumped to near a site. A jump into the middle of a window would execute half of our
 * own jump, so every way to name a code address is searched for, at the level of bytes, all over
 * the object:
 *
 *   - direct branches: any byte that could be an opcode with a displacement behind it;
 *   - addresses taken in code: lea, and 32-bit absolute values in executables that are not
 *     relocatable;
 *   - jump tables: 32-bit entries relative to a base which code takes the address of;
 *   - 64-bit words, link-time or absolute: symbols, relocation addends, computed gotos, absolute
 *     jump tables, descriptors of restartable sequences;
 *   - function starts and landing pads from the unwind tables.
 *
 * What looks like a branch but is not on an instruction boundary of a function that decodes cleanly
 * is cleared, and so is a word that leads into the middle of an instruction; nothing else is. A
 * false find costs a window (or makes it another one), a missed one a crash.
 *
 * The pass is over millions of bytes for some hundreds of sites, so the first test is a bitmap of
 * the 64-byte lines that sites lie in; almost everything ends there.
 */
#include "internal.h"

#define LINE 64ul
#define MAX_ENTRIES 65536u /* of a jump table */
#define BASES 65536u       /* jump table bases remembered */

struct marker {
    struct object *o;
    uint8_t *lines; /* a bit for each 64 bytes of code */
    size_t lines_bytes;
    /* where functions are: less than code_lo to code_hi if rodata is executable too */
    uintptr_t lo, hi;
    uintptr_t *bases; /* direct-mapped: bases walked already, as many lea name the same one */
};

static bool near_site(const struct marker *m, uintptr_t t)
{
    uintptr_t line = (t - m->o->code_lo) / LINE;
    return t >= m->o->code_lo && t < m->o->code_hi && (m->lines[line / 8] >> (line % 8) & 1);
}

/* The first site whose span ends behind t; spans are all of one length, so they are sorted as
 * well. */
static size_t first_spanning(const struct object *o, uintptr_t t)
{
    size_t lo = 0, hi = o->sites;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (o->site[mid].syscall - PATCH_SITE_BEFORE + PATCH_SITE_SPAN > t)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void mark(struct object *o, uintptr_t t)
{
    for (size_t i = first_spanning(o, t);
         i < o->sites && o->site[i].syscall - PATCH_SITE_BEFORE <= t; i++) {
        uintptr_t bit = t - (o->site[i].syscall - PATCH_SITE_BEFORE);
        o->site[i].target[bit / 64] |= 1ull << (bit % 64);
    }
}

static bool marked(const struct object *o, uintptr_t t)
{
    bool all = true;
    for (size_t i = first_spanning(o, t);
         i < o->sites && o->site[i].syscall - PATCH_SITE_BEFORE <= t; i++)
        all &= target_is(&o->site[i], t);
    return all;
}

static void mark_if_near(struct marker *m, uintptr_t t)
{
    if (near_site(m, t))
        mark(m->o, t);
}

/* The byte at `at` looks like part of a branch to t. Marks t unless the byte provably belongs to
 * something else. */
static void mark_branch(struct marker *m, uintptr_t at, uintptr_t t)
{
    /* no need to prove what is known, such as calls of functions */
    if (!near_site(m, t) || marked(m->o, t))
        return;
    uintptr_t lo, hi;
    if (code_sweep(m->o, at, &lo, &hi)) {
        /* Prefixes may stand in front of the opcode, so ask for the instruction around the byte. */
        uintptr_t start = code_boundary(m->o, at) ? at : code_previous(m->o, at, lo);
        struct insn in;
        if (start && code_decode(start, hi, &in) && at < start + in.len &&
            !(in.relative && in.target == t))
            return;
    }
    mark(m->o, t);
}

static int32_t int32_at(uintptr_t p)
{
    int32_t v;
    __builtin_memcpy(&v, (const void *)p, 4);
    return v;
}

/* Only of functions that decode cleanly. */
static bool inside_instruction(struct marker *m, uintptr_t t)
{
    uintptr_t lo, hi;
    return code_sweep(m->o, t, &lo, &hi) && !code_boundary(m->o, t);
}

/* Compilers write jump tables as 32-bit differences to the table's own start. Where the table ends
 * is not known: at the first entry that leads to where no functions are, which is early in anything
 * that is no table. Before that it may go on into the next tables, whose entries count from
 * elsewhere; those of them that would lead into the middle of an instruction are told by that. */
static void walk_table(struct marker *m, uintptr_t base)
{
    struct object *o = m->o;
    uintptr_t *slot = &m->bases[(base >> 2 ^ base >> 18) % BASES];
    if (*slot == base)
        return;
    *slot = base;
    for (unsigned i = 0; i < o->segments; i++) {
        const struct segment *s = &o->segment[i];
        if (base < s->lo || base >= s->hi)
            continue;
        uintptr_t p = base;
        for (unsigned n = 0; n < MAX_ENTRIES && s->hi - p >= 4; n++, p += 4) {
            uintptr_t t = base + (uintptr_t)(intptr_t)int32_at(p);
            if (t < m->lo || t >= m->hi)
                break;
            if (near_site(m, t) && !inside_instruction(m, t))
                mark(o, t);
        }
    }
}

/* --- branches and address constants in code --------------------------------------------------- */

static void examine(struct marker *m, uintptr_t p)
{
    uint8_t op = *(const uint8_t *)p, next = ((const uint8_t *)p)[1];
    if (op == 0xe8 || op == 0xe9) { /* call, jmp */
        mark_branch(m, p, p + 5 + (uintptr_t)(intptr_t)int32_at(p + 1));
        return;
    }
    uintptr_t t = p + 6 + (uintptr_t)(intptr_t)int32_at(p + 2);
    if ((op == 0x0f && (next & 0xf0) == 0x80) || (op == 0xc7 && next == 0xf8)) { /* jcc, xbegin */
        mark_branch(m, p, t);
    } else if (op == 0x8d && (next & 0xc7) == 0x05) { /* lea disp(%rip) */
        mark_if_near(m, t);
        walk_table(m, t);
    }
}

static void scan_long(struct marker *m, const struct segment *s)
{
    uintptr_t p = s->lo;
    /* Eight opcodes at a time: the words v and w hold each opcode and the byte behind it, and a
     * byte of a sum is zero where both are as wanted. Bytes above a zero may be flagged as well:
     * examine() looks. */
    for (; s->hi - p >= 16; p += 8) {
        uint64_t v = swar_load(p), w = swar_load(p + 1);
        uint64_t hit =
            swar_zero((v & 0xfe * SWAR_ONES) ^ 0xe8 * SWAR_ONES) |
            swar_zero((v ^ 0x0f * SWAR_ONES) | ((w & 0xf0 * SWAR_ONES) ^ 0x80 * SWAR_ONES)) |
            swar_zero((v ^ 0xc7 * SWAR_ONES) | (w ^ 0xf8 * SWAR_ONES)) |
            swar_zero((v ^ 0x8d * SWAR_ONES) | ((w & 0xc7 * SWAR_ONES) ^ 0x05 * SWAR_ONES));
        for (; hit; hit &= hit - 1)
            examine(m, p + (unsigned)__builtin_ctzll(hit) / 8);
    }
    for (; s->hi - p >= 6; p++)
        examine(m, p);
    if (s->hi - p == 5 && (*(const uint8_t *)p & 0xfe) == 0xe8) /* the one form of five bytes */
        examine(m, p);
}

/* Two-byte branches reach 128 bytes, so only the neighbourhood of each site is read. */
static void scan_short(struct marker *m)
{
    struct object *o = m->o;
    for (size_t i = 0; i < o->sites; i++) {
        const struct segment *s = elf_code(o, o->site[i].syscall);
        uintptr_t lo = o->site[i].syscall - PATCH_SITE_BEFORE - 130;
        uintptr_t hi = o->site[i].syscall - PATCH_SITE_BEFORE + PATCH_SITE_SPAN + 130;
        if (lo < s->lo || lo > o->site[i].syscall)
            lo = s->lo;
        if (hi > s->hi - 1)
            hi = s->hi - 1;
        for (uintptr_t p = lo; p < hi; p++) {
            uint8_t op = *(const uint8_t *)p;
            /* jmp, jcc, and loopne, loope, loop, jrcxz */
            if (op == 0xeb || (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0)
                mark_branch(m, p, p + 2 + (uintptr_t)(intptr_t)((const int8_t *)p)[1]);
        }
    }
}

/* --- address constants anywhere --------------------------------------------------------------- */

static void scan_words(struct marker *m, const struct segment *s)
{
    uintptr_t span = m->o->code_hi - m->o->code_lo, absolute = m->o->code_lo,
              linked = absolute - m->o->bias;
    for (uintptr_t p = (s->lo + 7) & ~7ul; s->hi - p >= 8 && p < s->hi; p += 8) {
        uintptr_t w = *(const uintptr_t *)p;
        uintptr_t t = w - absolute < span ? w : w - linked < span ? w + m->o->bias : 0;
        /* In a small program many numbers look like an address before it is relocated. */
        if (t && near_site(m, t) && !inside_instruction(m, t))
            mark(m->o, t);
    }
}

/* `mov $label,%eax`, `push $label`, `jmp *(%rax)` through a table of 32-bit addresses: possible
 * only where addresses are known when linking, and then below 2^32. */
static void scan_absolute(struct marker *m, const struct segment *s)
{
    if (s->hi - s->lo < 4)
        return;
    for (uintptr_t p = s->lo; p <= s->hi - 4; p++)
        mark_if_near(m, (uint32_t)int32_at(p));
}

static void scan_unwind(struct marker *m)
{
    struct object *o = m->o;
    struct fde fde;
    for (size_t i = 0; i < o->eh_count; i++) {
        mark_if_near(m, eh_start(o, i));
        if (!eh_at(o, i, &fde) || !fde.lsda || eh_landing_pads(o, &fde, mark, o))
            continue;
        for (size_t k = 0; k < o->sites; k++)
            if (o->site[k].syscall >= fde.lo && o->site[k].syscall < fde.hi)
                o->site[k].refused = "exception table not understood";
    }
}

static void find_functions(struct marker *m)
{
    const struct object *o = m->o;
    struct fde fde;
    if (o->eh_count && eh_at(o, o->eh_count - 1, &fde)) {
        m->lo = eh_start(o, 0);
        m->hi = fde.hi;
    } else {
        m->lo = o->code_lo;
        m->hi = o->code_hi;
    }
    for (size_t i = 0; i < o->sites; i++) {
        const struct site *s = &o->site[i];
        if (s->fn_lo < s->fn_hi && s->fn_lo < m->lo)
            m->lo = s->fn_lo;
        if (s->fn_lo < s->fn_hi && s->fn_hi > m->hi)
            m->hi = s->fn_hi;
    }
}

/* Where code has been interrupted, and goes on. */
static uintptr_t spared[16];
static uint32_t spared_count;

bool patch_spare(uintptr_t ip)
{
    enum { ROOM = sizeof spared / sizeof *spared };
    for (uint32_t i = 0; i < spared_count; i++)
        if (spared[i] == ip)
            return true;
    if (spared_count == ROOM)
        return false;
    spared[spared_count++] = ip;
    return true;
}

bool target_spares(void) { return spared_count; }

int target_mark(struct object *o)
{
    struct marker m = {.o = o};
    find_functions(&m);
    m.lines_bytes = (o->code_hi - o->code_lo) / (8 * LINE) + 1;
    m.lines = arena_scratch(m.lines_bytes);
    m.bases = arena_scratch(BASES * sizeof *m.bases);
    if (m.lines && m.bases) {
        for (size_t i = 0; i < o->sites; i++) {
            uintptr_t first = o->site[i].syscall - PATCH_SITE_BEFORE,
                      last = first + PATCH_SITE_SPAN - 1;
            first = first < o->code_lo ? 0 : first - o->code_lo;
            last = last < o->code_hi ? last - o->code_lo : o->code_hi - 1 - o->code_lo;
            for (uintptr_t line = first / LINE; line <= last / LINE; line++)
                m.lines[line / 8] |= (uint8_t)(1u << (line % 8));
        }
        /* Branches last: most lead to what the others have marked, and proving them costs a sweep
         * each. */
        scan_unwind(&m);
        for (uint32_t i = 0; i < spared_count; i++)
            mark_if_near(&m, spared[i]);
        for (unsigned i = 0; i < o->segments; i++) {
            if (o->fixed)
                scan_absolute(&m, &o->segment[i]);
            scan_words(&m, &o->segment[i]);
        }
        scan_short(&m);
        for (unsigned i = 0; i < o->segments; i++)
            if (o->segment[i].code)
                scan_long(&m, &o->segment[i]);
    }
    bool ok = m.lines && m.bases;
    arena_release(m.lines, m.lines_bytes);
    arena_release(m.bases, BASES * sizeof *m.bases);
    return ok ? 0 : PATCH_ENOMEM;
}
