/* SPDX-License-Identifier: MIT
 *
 * Find what may be jumped to near a site. A jump into the middle of a window would execute half of
 * the runtime's own jump. So every way to name a code address is searched for, byte by byte, in the
 * whole object:
 *
 *   - direct branches: any byte that could be an opcode with a displacement behind it;
 *   - addresses taken in code: lea, and 32-bit absolute values in executables that are not
 *     relocatable;
 *   - jump tables: 32-bit entries relative to a base whose address code takes (table.c);
 *   - 64-bit words, link-time or absolute: symbols, relocation addends, computed gotos, absolute
 *     jump tables, descriptors of restartable sequences;
 *   - function starts and landing pads from the unwind tables.
 *
 * Bytes that look like a branch are cleared if they are not on an instruction boundary of a
 * function that decodes cleanly. So is a word that leads into the middle of an instruction; nothing
 * else is. A false find costs a window (or makes it another one), a missed one a crash.
 *
 * Millions of bytes are searched for some hundreds of sites. So the first test is a bitmap of the
 * 64-byte lines that sites lie in, and almost everything ends there.
 */
#include "target.h"

/* Return the first site whose span ends behind t. Spans have one length, so they are sorted as
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

void target_found(struct object *o, uintptr_t t)
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
    if (target_near(m, t))
        target_found(m->o, t);
}

/* Mark t: the byte at `at` looks like part of a branch to t. Does nothing if the byte provably
 * belongs to something else. */
static void mark_branch(struct marker *m, uintptr_t at, uintptr_t t)
{
    /* no need to prove known targets, such as those of function calls */
    if (!target_near(m, t) || marked(m->o, t))
        return;
    uintptr_t lo, hi;
    if (code_sweep(m->o, at, &lo, &hi)) {
        /* Prefixes may precede the opcode, so decode the instruction around the byte. */
        uintptr_t start = code_boundary(m->o, at) ? at : code_previous(m->o, at, lo);
        struct insn in;
        if (start && code_decode(start, hi, &in) && at < start + in.len &&
            !(in.relative && in.target == t))
            return;
    }
    target_found(m->o, t);
}

bool target_inside_instruction(struct marker *m, uintptr_t t)
{
    uintptr_t lo, hi;
    return code_sweep(m->o, t, &lo, &hi) && !code_boundary(m->o, t);
}

/* Note that functions of sites that start at t are called, or their address is taken. */
static void is_called(struct marker *m, uintptr_t t)
{
    struct object *o = m->o;
    for (size_t i = first_spanning(o, t); i < o->sites && o->site[i].fn_lo <= t; i++)
        o->site[i].called |= o->site[i].fn_lo == t;
}

/* Note that an instruction at `at` calls functions of sites that start at t, or takes their
 * address. Does nothing if `at` is the middle of another instruction. */
static void is_called_at(struct marker *m, uintptr_t at, uintptr_t t)
{
    uintptr_t lo, hi;
    if (target_near(m, t) && code_sweep(m->o, at, &lo, &hi) && code_boundary(m->o, at))
        is_called(m, t);
}

static int32_t int32_at(uintptr_t p)
{
    int32_t v;
    __builtin_memcpy(&v, (const void *)p, 4);
    return v;
}

/* --- branches and address constants in code --------------------------------------------------- */

static void jumps(struct marker *m, uintptr_t at, uintptr_t t)
{
    if (!target_in(m, m->functions, t))
        return;
    target_move(m, at);
    table_join(m, at, t);
}

static void examine(struct marker *m, uintptr_t p)
{
    uint8_t op = *(const uint8_t *)p, next = ((const uint8_t *)p)[1];
    if (op == 0xe8 || op == 0xe9) { /* call, jmp */
        uintptr_t to = p + 5 + (uintptr_t)(intptr_t)int32_at(p + 1);
        mark_branch(m, p, to);
        if (op == 0xe8)
            is_called_at(m, p, to);
        else
            jumps(m, p, to);
        return;
    }
    uintptr_t t = p + 6 + (uintptr_t)(intptr_t)int32_at(p + 2);
    if ((op == 0x0f && (next & 0xf0) == 0x80) || (op == 0xc7 && next == 0xf8)) { /* jcc, xbegin */
        mark_branch(m, p, t);
        jumps(m, p, t);
    } else if (op == 0x8d && (next & 0xc7) == 0x05) { /* lea disp(%rip) */
        mark_if_near(m, t);
        is_called_at(m, p, t);
    }
}

static void scan_long(struct marker *m, const struct segment *s)
{
    uintptr_t p = s->lo;
    /* Test eight opcodes at a time. The words v and w hold each opcode and the byte behind it, and
     * a byte of a sum is zero where both match. Bytes above a zero may be flagged as well:
     * examine() checks. */
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
    if (s->hi - p == 5 && (*(const uint8_t *)p & 0xfe) == 0xe8) /* the only form of five bytes */
        examine(m, p);
}

static void examine_table(struct marker *m, uintptr_t p)
{
    if (*(const uint8_t *)p != 0x8d || (((const uint8_t *)p)[1] & 0xc7) != 0x05)
        return;
    target_move(m, p);
    table_walk(m, p, p + 6 + (uintptr_t)(intptr_t)int32_at(p + 2));
}

/* Search for jump tables, once all jumps are known. */
static void scan_tables(struct marker *m, const struct segment *s)
{
    uintptr_t p = s->lo;
    m->function = m->function_hi = 0;
    for (; s->hi - p >= 16; p += 8) {
        uint64_t v = swar_load(p), w = swar_load(p + 1);
        uint64_t hit =
            swar_zero((v ^ 0x8d * SWAR_ONES) | ((w & 0xc7 * SWAR_ONES) ^ 0x05 * SWAR_ONES));
        for (; hit; hit &= hit - 1)
            examine_table(m, p + (unsigned)__builtin_ctzll(hit) / 8);
    }
    for (; s->hi - p >= 6; p++)
        examine_table(m, p);
}

/* Two-byte branches reach 128 bytes, so only the surroundings of each site are read. */
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
        /* In a small program many numbers look like an unrelocated address. */
        if (t && target_near(m, t) && !target_inside_instruction(m, t)) {
            target_found(m->o, t);
            is_called(m, t);
        }
    }
}

/* Search for 32-bit absolute addresses: `mov $label,%eax`, `push $label`, `jmp *(%rax)` through a
 * table. They exist only if addresses are known when linking, and then are below 2^32. */
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
        if (!eh_at(o, i, &fde) || !fde.lsda || eh_landing_pads(o, &fde, target_found, o))
            continue;
        for (size_t k = 0; k < o->sites; k++)
            if (o->site[k].syscall >= fde.lo && o->site[k].syscall < fde.hi)
                o->site[k].refused = "exception table cannot be parsed";
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

/* Addresses at which code has been interrupted, and will continue. */
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

/* Set the lines of [first, last]. */
static void set_lines(const struct object *o, uint8_t *lines, uintptr_t first, uintptr_t last)
{
    first = first < o->code_lo ? 0 : first - o->code_lo;
    last = last < o->code_hi ? last - o->code_lo : o->code_hi - 1 - o->code_lo;
    for (uintptr_t line = first / TARGET_LINE; line <= last / TARGET_LINE; line++)
        lines[line / 8] |= (uint8_t)(1u << (line % 8));
}

static void search(struct marker *m)
{
    struct object *o = m->o;
    for (size_t i = 0; i < o->sites; i++) {
        const struct site *s = &o->site[i];
        uintptr_t first = s->syscall - PATCH_SITE_BEFORE;
        set_lines(o, m->lines, first, first + PATCH_SITE_SPAN - 1);
        if (s->fn_lo < s->fn_hi) {
            set_lines(o, m->lines, s->fn_lo, s->fn_lo);
            set_lines(o, m->functions, s->fn_lo, s->fn_hi - 1);
        }
    }
    table_prepare(m);
    for (size_t i = 0; i < o->symbol_count; i++)
        if (o->symbols[i].st_shndx != SHN_UNDEF && target_near(m, o->bias + o->symbols[i].st_value))
            is_called(m, o->bias + o->symbols[i].st_value);
    /* Branches last: most lead to what the others have marked, and proving one takes a sweep. */
    scan_unwind(m);
    for (uint32_t i = 0; i < spared_count; i++)
        mark_if_near(m, spared[i]);
    for (unsigned i = 0; i < o->segments; i++) {
        if (o->fixed)
            scan_absolute(m, &o->segment[i]);
        scan_words(m, &o->segment[i]);
    }
    scan_short(m);
    for (unsigned i = 0; i < o->segments; i++)
        if (o->segment[i].code) {
            m->function = m->function_hi = 0;
            scan_long(m, &o->segment[i]);
        }
    table_joined(m);
    for (unsigned i = 0; i < o->segments; i++)
        if (o->segment[i].code)
            scan_tables(m, &o->segment[i]);
    table_decide(m);
}

int target_mark(struct object *o)
{
    enum {
        TABLES = TARGET_TABLES * sizeof(struct table),
        STRAYS = TARGET_STRAYS * sizeof(struct stray)
    };
    struct marker m = {.o = o};
    find_functions(&m);
    m.lines_bytes = (o->code_hi - o->code_lo) / (8 * TARGET_LINE) + 1;
    m.lines = arena_scratch(m.lines_bytes);
    m.functions = arena_scratch(m.lines_bytes);
    m.joined_bytes = o->eh_count / 8 + 1;
    m.joined = arena_scratch(m.joined_bytes);
    m.table = arena_scratch(TABLES);
    m.stray = arena_scratch(STRAYS);
    bool ok = m.lines && m.functions && m.joined && m.table && m.stray;
    if (ok)
        search(&m);
    arena_release(m.lines, m.lines_bytes);
    arena_release(m.functions, m.lines_bytes);
    arena_release(m.joined, m.joined_bytes);
    arena_release(m.table, TABLES);
    arena_release(m.stray, STRAYS);
    return ok ? 0 : PATCH_ENOMEM;
}
