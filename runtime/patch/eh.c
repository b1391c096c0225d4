/* SPDX-License-Identifier: MIT
 *
 * Function bounds and landing pads from the unwind tables (.eh_frame_hdr, .eh_frame,
 * .gcc_except_table). A stripped object keeps no other description of all its functions. The loader
 * maps these tables, and unwinders of C++ programs rely on them, so compilers keep them right.
 *
 * Every read is checked against the object's segments: a damaged table costs windows, never a
 * fault.
 */
#include "internal.h"

enum { /* DW_EH_PE_*: how a pointer is encoded */
       PE_ABSPTR = 0x00,
       PE_ULEB = 0x01,
       PE_UDATA2 = 0x02,
       PE_UDATA4 = 0x03,
       PE_UDATA8 = 0x04,
       PE_SLEB = 0x09,
       PE_SDATA2 = 0x0a,
       PE_SDATA4 = 0x0b,
       PE_SDATA8 = 0x0c,
       PE_PCREL = 0x10,
       PE_DATAREL = 0x30,
       PE_OMIT = 0xff,
};

struct cursor { /* reads forward, never beyond `end`: sets `bad` instead */
    uintptr_t at, end;
    bool bad;
};

static struct cursor cursor_at(const struct object *o, uintptr_t at)
{
    for (unsigned i = 0; i < o->segments; i++)
        if (at >= o->segment[i].lo && at < o->segment[i].hi)
            return (struct cursor){at, o->segment[i].hi, false};
    return (struct cursor){at, at, true};
}

static uint64_t take(struct cursor *c, unsigned bytes)
{
    uint64_t v = 0;
    if (c->bad || c->end - c->at < bytes) {
        c->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)((const uint8_t *)c->at)[i] << (8 * i);
    c->at += bytes;
    return v;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
    uint64_t v = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(c, 1);
        if (shift < 64)
            v |= (byte & 0x7f) << shift;
        shift += 7;
    } while (!c->bad && (byte & 0x80));
    if (is_signed && shift < 64 && (byte & 0x40))
        v |= ~0ull << shift;
    return v;
}

/* Read the value as stored. Sets c->bad for an encoding that nothing on x86-64 uses. */
static uint64_t take_raw(struct cursor *c, uint8_t enc)
{
    switch (enc & 0x0f) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8: return take(c, 8);
    case PE_UDATA2: return take(c, 2);
    case PE_UDATA4: return take(c, 4);
    case PE_SDATA2: return (uint64_t)(int64_t)(int16_t)take(c, 2);
    case PE_SDATA4: return (uint64_t)(int64_t)(int32_t)take(c, 4);
    case PE_ULEB: return take_leb(c, false);
    case PE_SLEB: return take_leb(c, true);
    default: c->bad = true; return 0;
    }
}

static uintptr_t take_pointer(const struct object *o, struct cursor *c, uint8_t enc)
{
    uintptr_t here = c->at;
    uint64_t v = take_raw(c, enc);
    if (v == 0)
        return 0; /* "none" by convention, whatever it would be relative to */
    switch (enc & 0xf0) {
    case PE_ABSPTR:
        return v >= o->lo ? v : v + o->bias; /* the relocation may not have been applied yet */
    case PE_PCREL: return here + v;
    default: c->bad = true; return 0;
    }
}

void eh_open(struct object *o, uintptr_t hdr, size_t len)
{
    struct cursor c = cursor_at(o, hdr);
    if (c.bad || len < 12 || len > c.end - c.at)
        return;
    c.end = c.at + len;
    uint8_t version = (uint8_t)take(&c, 1), frame = (uint8_t)take(&c, 1);
    uint8_t count_enc = (uint8_t)take(&c, 1), table_enc = (uint8_t)take(&c, 1);
    /* The only table encoding that linkers write. With another one there is no table, as if there
     * were no unwind data. */
    if (version != 1 || count_enc != PE_UDATA4 || table_enc != (PE_DATAREL | PE_SDATA4))
        return;
    take_raw(&c, frame);
    size_t count = take(&c, 4);
    if (c.bad || count > (c.end - c.at) / 8)
        return;
    o->eh_hdr = hdr;
    o->eh_table = (const int32_t *)c.at;
    o->eh_count = count;
}

uintptr_t eh_start(const struct object *o, size_t index)
{
    return o->eh_hdr + (uintptr_t)(intptr_t)o->eh_table[2 * index];
}

/* Return the number of entries that start at or below addr. */
static size_t entries_upto(const struct object *o, uintptr_t addr)
{
    size_t lo = 0, hi = o->eh_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (eh_start(o, mid) <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct cie {
    uint8_t pointer, lsda; /* encodings */
    bool augmented, signal;
};

static bool cie_read(const struct object *o, uintptr_t at, struct cie *cie)
{
    *cie = (struct cie){PE_ABSPTR, PE_OMIT, false, false};
    struct cursor c = cursor_at(o, at);
    uint64_t len = take(&c, 4), id = take(&c, 4);
    uint8_t version = (uint8_t)take(&c, 1);
    if (c.bad || len == 0 || len == 0xffffffff || id != 0 || (version != 1 && version != 3))
        return false;
    uintptr_t aug = c.at;
    while (take(&c, 1) != 0)
        ;
    take_leb(&c, false);
    take_leb(&c, true);
    if (version == 1)
        take(&c, 1);
    else
        take_leb(&c, false);
    const char *a = (const char *)aug;
    if (c.bad)
        return false;
    if (*a == 0)
        return true;
    if (*a != 'z')
        return false;
    cie->augmented = true;
    take_leb(&c, false);
    while (*++a && !c.bad) {
        if (*a == 'R') {
            cie->pointer = (uint8_t)take(&c, 1);
        } else if (*a == 'L') {
            cie->lsda = (uint8_t)take(&c, 1);
        } else if (*a == 'P') {
            uint8_t enc = (uint8_t)take(&c, 1);
            take_raw(&c, enc);
        } else if (*a == 'S') {
            cie->signal = true;
        } else if (*a != 'B') {
            return false;
        }
    }
    return !c.bad;
}

bool eh_at(const struct object *o, size_t index, struct fde *fde)
{
    uintptr_t at = o->eh_hdr + (uintptr_t)(intptr_t)o->eh_table[2 * index + 1];
    struct cursor c = cursor_at(o, at);
    uint64_t len = take(&c, 4);
    uintptr_t id_at = c.at;
    uint64_t back = take(&c, 4);
    struct cie cie;
    if (c.bad || len == 0 || len == 0xffffffff || back == 0 || !cie_read(o, id_at - back, &cie))
        return false;
    uintptr_t lo = take_pointer(o, &c, cie.pointer);
    uint64_t size = take_raw(&c, cie.pointer & 0x0f);
    uintptr_t lsda = 0;
    if (cie.augmented) {
        take_leb(&c, false);
        if (cie.lsda != PE_OMIT)
            lsda = take_pointer(o, &c, cie.lsda);
    }
    const struct segment *s = elf_code(o, lo);
    if (c.bad || !s || size == 0 || size > s->hi - lo)
        return false;
    *fde = (struct fde){lo, lo + size, lsda, index, cie.signal};
    return true;
}

bool eh_around(const struct object *o, uintptr_t addr, struct fde *fde)
{
    size_t n = entries_upto(o, addr);
    return n > 0 && eh_at(o, n - 1, fde) && addr >= fde->lo && addr < fde->hi;
}

bool eh_in_front(const struct object *o, uintptr_t addr, struct fde *fde, uintptr_t *next)
{
    size_t n = entries_upto(o, addr);
    *next = n < o->eh_count ? eh_start(o, n) : UINTPTR_MAX;
    return n > 0 && eh_at(o, n - 1, fde) && fde->hi <= addr;
}

bool eh_starts_within(const struct object *o, uintptr_t lo, uintptr_t hi)
{
    size_t n = entries_upto(o, lo);
    return n < o->eh_count && eh_start(o, n) < hi;
}

bool eh_landing_pads(const struct object *o, const struct fde *fde,
                     void (*pad)(struct object *, uintptr_t), struct object *arg)
{
    struct cursor c = cursor_at(o, fde->lsda);
    uintptr_t base = fde->lo;
    uint8_t enc = (uint8_t)take(&c, 1);
    if (enc != PE_OMIT)
        base =
            take_pointer(o, &c, enc); /* pads of a split function are relative to its other half */
    enc = (uint8_t)take(&c, 1);
    if (enc != PE_OMIT)
        take_leb(&c, false);
    enc = (uint8_t)take(&c, 1);
    uint64_t len = take_leb(&c, false);
    if (c.bad || len > c.end - c.at)
        return false;
    c.end = c.at + len;
    while (c.at < c.end && !c.bad) {
        take_raw(&c, enc & 0x0f);
        take_raw(&c, enc & 0x0f);
        uint64_t offset = take_raw(&c, enc & 0x0f);
        take_leb(&c, false);
        if (offset && !c.bad)
            pad(arg, base + offset);
    }
    return !c.bad;
}
