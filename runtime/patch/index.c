/* SPDX-License-Identifier: MIT
 *
 * Find the site of an instruction pointer, at any time, from any signal handler.
 *
 * The callers serialize writers; readers take no lock. A record's stub pages belong to it for ever
 * and stay mapped, so the search by address reads constants only. If a record is reused for another
 * object, its sites change under a reader only if the reader's ip lies in its stubs. Then a thread
 * executes a stub of an unmapped object, which is broken natively, too.
 */
#include "internal.h"

#include "../prim/prim.h"

#include <sys/mman.h>

#define PER_CHUNK 60

struct chunk {
    struct chunk *next;
    uint32_t used;
    /* Apart from the records, so that a miss (the usual result) touches few cache lines. */
    uintptr_t lo[PER_CHUNK], hi[PER_CHUNK];
    struct record record[PER_CHUNK];
};

static struct chunk *first;

static struct chunk *load_chunk(struct chunk **p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }

static struct record *reusable(const struct object *o, size_t sites, size_t stub_bytes)
{
    for (struct chunk *c = first; c; c = c->next)
        for (uint32_t i = 0; i < c->used; i++) {
            struct record *r = &c->record[i];
            if (r->count == 0 && r->capacity >= sites && r->stubs_end - r->stubs >= stub_bytes &&
                arena_reaches(r->stubs, r->stubs_end, o))
                return r;
        }
    return NULL;
}

struct record *index_record(const struct object *o, size_t sites, size_t stub_bytes)
{
    stub_bytes = (stub_bytes + PATCH_PAGE - 1) & ~(PATCH_PAGE - 1);
    struct record *r = reusable(o, sites, stub_bytes);
    if (r) {
        if (prim_mprotect((void *)r->stubs, r->stubs_end - r->stubs, PROT_READ | PROT_WRITE) < 0)
            return NULL;
    } else {
        struct chunk *c = first, *last = NULL;
        for (; c && c->used == PER_CHUNK; c = c->next)
            last = c;
        if (!c) {
            c = arena_keep(sizeof *c);
            if (!c)
                return NULL;
            __atomic_store_n(last ? &last->next : &first, c, __ATOMIC_RELEASE);
        }
        struct patch_site *site = arena_keep(sites * sizeof *site);
        uint8_t *stubs = site ? arena_stubs(o, stub_bytes) : NULL;
        if (!stubs)
            return NULL;
        r = &c->record[c->used];
        *r = (struct record){.stubs = (uintptr_t)stubs,
                             .stubs_end = (uintptr_t)stubs + stub_bytes,
                             .site = site,
                             .capacity = (uint32_t)sites};
        c->lo[c->used] = r->stubs;
        c->hi[c->used] = r->stubs_end;
        __atomic_store_n(&c->used, c->used + 1, __ATOMIC_RELEASE);
    }
    r->lo = o->lo;
    r->hi = o->hi;
    return r;
}

void index_publish(struct record *r, uint32_t count)
{
    __atomic_store_n(&r->count, count, __ATOMIC_RELEASE);
}

void index_retire(struct record *r) { __atomic_store_n(&r->count, 0, __ATOMIC_RELEASE); }

struct record *index_next(struct record *after)
{
    bool take = after == NULL;
    for (struct chunk *c = first; c; c = c->next)
        for (uint32_t i = 0; i < c->used; i++) {
            if (take && c->record[i].count)
                return &c->record[i];
            take |= &c->record[i] == after;
        }
    return NULL;
}

const struct patch_site *patch_site_at(uintptr_t ip)
{
    for (struct chunk *c = load_chunk(&first); c; c = load_chunk(&c->next)) {
        uint32_t used = __atomic_load_n(&c->used, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i < used; i++) {
            if (ip < c->lo[i] || ip >= c->hi[i])
                continue;
            const struct record *r = &c->record[i];
            uint32_t lo = 0, hi = __atomic_load_n(&r->count, __ATOMIC_ACQUIRE);
            while (lo < hi) { /* find the first site whose stub ends behind ip */
                uint32_t mid = lo + (hi - lo) / 2;
                if (r->site[mid].stub_end > ip)
                    hi = mid;
                else
                    lo = mid + 1;
            }
            if (lo < __atomic_load_n(&r->count, __ATOMIC_RELAXED) && r->site[lo].stub <= ip)
                return &r->site[lo];
            return NULL; /* padding, or a record that is not in use */
        }
    }
    return NULL;
}

uintptr_t patch_native_ip(uintptr_t ip)
{
    const struct patch_site *p = patch_site_at(ip);
    if (!p)
        return 0;
    uintptr_t native = p->window;
    for (unsigned i = 0; i < p->insns && p->map[i].stub <= ip - p->stub; i++)
        native = p->window + p->map[i].native;
    return native;
}
