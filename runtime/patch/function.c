/* SPDX-License-Identifier: MIT
 *
 * Redirect functions at their first instruction, whatever object a caller belongs to and however it
 * found the function. Only calls from outside of the object are certain to be redirected: inside, a
 * compiler may have copied the function, or jump to its parts.
 *
 * The window is the first five bytes or a little more, behind an endbr64. Nothing may jump into it
 * except to its beginning, and each of its instructions must do the same elsewhere. The rules are
 * those for system calls (target.c, window.c). A function that does not provably follow them is
 * left alone.
 */
#include "internal.h"

enum {
    JUMP = 5,
    MOST = 128 /* functions of an object */,
    STUB = 128 /* bytes, at most: 16 for the entry, 32 displaced ones that may grow */
};

struct wanted {
    struct site site[MOST];
    uint32_t what[MOST];
    unsigned count;
    uint32_t layer; /* the highest of them, except PATCH_EVERY_LAYER */
    uintptr_t beside[PATCH_BESIDE];
};

static bool same(const struct object *o, uintptr_t at, const uint8_t *bytes, size_t n)
{
    return elf_readable(o, at, n) && !__builtin_memcmp((const void *)at, bytes, n);
}

/* Remove the functions of layers below `layer`. */
static void drop_below(struct wanted *w, uint32_t layer)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->count; i++)
        if (w->what[i] >> 8 >= layer) {
            w->site[n] = w->site[i];
            w->what[n++] = w->what[i];
        }
    w->count = n;
}

/* Insert a function, sorted by address, but only once: functions have several names. */
static void want(struct wanted *w, uintptr_t at, uint32_t what)
{
    uint32_t layer = what >> 8;
    if (layer < w->layer)
        return;
    if (layer > w->layer && layer != PATCH_EVERY_LAYER) {
        drop_below(w, layer);
        w->layer = layer;
    }
    unsigned i = w->count;
    for (unsigned k = 0; k < w->count; k++)
        if (w->site[k].syscall == at)
            return;
    if (w->count == MOST)
        return;
    for (; i > 0 && w->site[i - 1].syscall > at; i--) {
        w->site[i] = w->site[i - 1];
        w->what[i] = w->what[i - 1];
    }
    w->site[i] = (struct site){.syscall = at};
    w->what[i] = what;
    w->count++;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static void find(const struct object *o, struct wanted *w, const struct patch_config *config)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    for (size_t i = 0; i < o->symbol_count; i++) {
        const Elf64_Sym *s = &o->symbols[i];
        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
            s->st_name >= o->string_bytes)
            continue;
        const char *name = o->strings + s->st_name;
        uint32_t what = config->function_what(name);
        uintptr_t at = o->bias + s->st_value;
        for (unsigned k = 0; k < PATCH_BESIDE; k++)
            if (same_name(name, config->functions_beside[k]))
                w->beside[k] = at;
        if (what && elf_code(o, at))
            want(w, same(o, at, endbr64, sizeof endbr64) ? at + sizeof endbr64 : at, what);
    }
}

/* Choose the window of a function. Returns NULL, or why there is none. */
static const char *choose(const struct object *o, struct site *s)
{
    struct insn in;
    uintptr_t p = s->syscall;
    if (s->refused)
        return s->refused;
    while (p < s->syscall + JUMP) {
        if (!code_decode(p, s->fn_hi, &in) || in.kind == INSN_FIXED || in.kind == INSN_SYSCALL)
            return "first instructions cannot be moved";
        if (in.relative && !elf_code(o, in.target))
            return "a jump leaves the object";
        p += in.len;
        if (in.kind == INSN_JMP && p < s->syscall + JUMP)
            return "shorter than a jump";
    }
    for (uintptr_t t = s->syscall + 1; t < p; t++)
        if (target_is(s, t))
            return "a jump may target its first instructions";
    s->window = s->syscall;
    s->window_len = (uint8_t)(p - s->syscall);
    return NULL;
}

static unsigned write(struct object *o, struct wanted *w, int mem,
                      const struct patch_config *config)
{
    struct patch_redirect *redirect = arena_keep(w->count * sizeof *redirect);
    uintptr_t *beside = arena_keep(sizeof w->beside);
    struct record *r = redirect && beside ? index_record(o, w->count, w->count * STUB + 16) : NULL;
    if (!r)
        return 0;
    __builtin_memcpy(beside, w->beside, sizeof w->beside);
    uintptr_t entry = (uintptr_t)config->function_entry;
    uint8_t *at = (uint8_t *)r->stubs;
    __builtin_memset(at, 0xcc, r->stubs_end - r->stubs);
    __builtin_memcpy(at, &entry, sizeof entry);
    at += 16;
    uint32_t n = 0;
    for (unsigned i = 0; i < w->count; i++) {
        if (w->site[i].refused)
            continue;
        redirect[n].what = w->what[i];
        redirect[n].beside = beside;
        size_t len = stub_write_function(at, &w->site[i], r->stubs, &redirect[n], &r->site[n]);
        if (!len)
            continue;
        n++;
        at += (len + 15) & ~15ul;
    }
    return patch_redirect_to(r, n, mem) == 0 ? n : 0;
}

static void choose_all(struct object *o, struct wanted *w, const struct patch_config *config)
{
    struct site *others = o->site;
    size_t count = o->sites;
    for (unsigned i = 0; i < w->count; i++)
        if (!code_sweep(o, w->site[i].syscall, &w->site[i].fn_lo, &w->site[i].fn_hi))
            w->site[i].refused = "function cannot be decoded";
    o->site = w->site;
    o->sites = w->count;
    int err = target_mark(o);
    o->site = others;
    o->sites = count;
    for (unsigned i = 0; i < w->count; i++) {
        struct site *s = &w->site[i];
        s->refused = err < 0 ? "no memory" : choose(o, s);
        if (s->refused && config->report)
            config->report(o->name, s->syscall - o->bias, s->refused);
    }
}

void function_redirect(struct object *o, int mem, const struct patch_config *config)
{
    unsigned n = 0;
    struct wanted *w = arena_scratch(sizeof *w);
    if (!w)
        return;
    if (o->strings)
        find(o, w, config);
    if (w->count && scan_prepare(o)) {
        choose_all(o, w, config);
        n = write(o, w, mem, config);
    }
    config->functions_done(o->name, n, w->count - n);
    arena_release(w, sizeof *w);
}
