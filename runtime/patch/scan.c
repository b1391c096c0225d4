/* SPDX-License-Identifier: MIT
 *
 * Find the system calls of an object: every 0F 05 in executable bytes that is an instruction.
 *
 * Most libraries have none, and some are large. The byte search reads eight bytes at a time, and is
 * all that such an object costs.
 */
#include "internal.h"

/* Return bytes that are zero exactly where p[i] == 0F and p[i+1] == 05. */
static inline uint64_t difference(uintptr_t p)
{
    return (swar_load(p) ^ 0x0f * SWAR_ONES) | (swar_load(p + 1) ^ 0x05 * SWAR_ONES);
}

/* Return the first 0F 05 in [p, end), or end. */
static uintptr_t find_syscall(uintptr_t p, uintptr_t end)
{
    /* Four words per turn: the four tests are independent, and one branch decides for all. */
    while (end - p >= 33) {
        if (swar_zero(difference(p)) | swar_zero(difference(p + 8)) |
            swar_zero(difference(p + 16)) | swar_zero(difference(p + 24))) {
            for (unsigned i = 0; i < 32; i++)
                if (((const uint8_t *)p)[i] == 0x0f && ((const uint8_t *)p)[i + 1] == 0x05)
                    return p + i;
        }
        p += 32;
    }
    for (; end - p >= 2; p++)
        if (((const uint8_t *)p)[0] == 0x0f && ((const uint8_t *)p)[1] == 0x05)
            return p;
    return end;
}

static struct site *add_site(struct object *o, uintptr_t addr)
{
    if (o->sites * sizeof *o->site == o->site_bytes) {
        size_t bytes =
            o->site_bytes ? 2 * o->site_bytes : 64 * 1024 / sizeof *o->site * sizeof *o->site;
        struct site *more = arena_scratch(bytes);
        if (!more)
            return NULL;
        if (o->site) {
            __builtin_memcpy(more, o->site, o->site_bytes);
            arena_release(o->site, o->site_bytes);
        }
        o->site = more;
        o->site_bytes = bytes;
    }
    struct site *s = &o->site[o->sites++];
    s->syscall = addr;
    return s;
}

/* Return whether this is a signal return: unwinders and debuggers recognize a signal frame by these
 * bytes, in any function. */
static bool is_sigreturn(const struct object *o, uintptr_t addr)
{
    static const uint8_t mov_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0},
                         mov_eax[] = {0xb8, 0x0f, 0, 0, 0};
    return (elf_readable(o, addr - 7, 7) &&
            !__builtin_memcmp((const void *)(addr - 7), mov_rax, 7)) ||
           (elf_readable(o, addr - 5, 5) &&
            !__builtin_memcmp((const void *)(addr - 5), mov_eax, 5));
}

static bool examine(struct object *o, uintptr_t addr)
{
    uintptr_t lo = 0, hi = 0;
    struct fde fde;
    const char *refused = NULL;
    bool harmless = false;
    if (!eh_around(o, addr, &fde) && !elf_may_be_code(o, addr))
        return true;
    if (is_sigreturn(o, addr)) {
        refused = "signal return trampoline";
        harmless = true;
    } else if (code_sweep(o, addr, &lo, &hi)) {
        if (!code_boundary(o, addr))
            return true; /* the middle of another instruction: no system call */
    } else if (lo == hi) {
        refused = "outside of known functions";
        harmless = !code_plausible_futex(o, addr);
        /* Most likely bytes of a table, not worth a report. */
        if (harmless)
            return true;
    } else if (eh_around(o, addr, &fde) && fde.signal) {
        refused = "signal return trampoline";
    } else {
        refused = "function cannot be decoded";
    }
    struct site *s = add_site(o, addr);
    if (!s)
        return false;
    s->refused = refused;
    s->harmless = harmless;
    if (!refused) {
        s->fn_lo = lo;
        s->fn_hi = hi;
    }
    return true;
}

/* Called at the first find: an object without any needs no tables. */
bool scan_prepare(struct object *o)
{
    if (o->boundary)
        return true;
    o->boundary_bytes = (o->code_hi - o->code_lo) / 8 + 1;
    o->boundary = arena_scratch(o->boundary_bytes);
    o->swept_bytes = o->eh_count / 4 + 1;
    o->swept = arena_scratch(o->swept_bytes);
    return o->boundary && o->swept;
}

long scan_sites(struct object *o)
{
    for (unsigned i = 0; i < o->segments; i++) {
        const struct segment *s = &o->segment[i];
        if (!s->code)
            continue;
        for (uintptr_t p = s->lo; (p = find_syscall(p, s->hi)) < s->hi; p++)
            if (!scan_prepare(o) || !examine(o, p))
                return PATCH_ENOMEM;
    }
    return (long)o->sites;
}
