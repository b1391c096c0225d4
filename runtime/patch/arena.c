/* SPDX-License-Identifier: MIT
 *
 * The runtime's own memory: scratch that is released, records that stay, and pages for stubs near
 * an object.
 */
#include "internal.h"

#include "../prim/maps.h"
#include "../prim/prim.h"

#include <sys/mman.h>

static size_t pages(size_t bytes) { return (bytes + PATCH_PAGE - 1) & ~(PATCH_PAGE - 1); }

void *arena_scratch(size_t bytes)
{
    /* NORESERVE: most pages of large objects' bitmaps are never touched. */
    void *p = prim_mmap(NULL, pages(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return prim_is_error(p) ? NULL : p;
}

void arena_release(void *p, size_t bytes)
{
    if (p)
        prim_munmap(p, pages(bytes));
}

void *arena_keep(size_t bytes)
{
    /* One caller at a time (patch.h), so no lock. */
    static uint8_t *free_at, *free_end;
    bytes = (bytes + 15) & ~15ul;
    if (bytes > (size_t)(free_end - free_at)) {
        size_t chunk = bytes > 65536 ? pages(bytes) : 65536;
        uint8_t *p = arena_scratch(chunk);
        if (!p)
            return NULL;
        free_at = p;
        free_end = p + chunk;
    }
    void *p = free_at;
    free_at += bytes;
    return p;
}

/* --- a place for stubs ------------------------------------------------------------------------ */

/* Space to leave free behind the heap: a mapping there would stop its growth. */
#define HEAP_ROOM (1ul << 30)
#define CANDIDATES 16

struct search {
    const struct object *o;
    size_t bytes;
    uintptr_t heap;
    uintptr_t at[CANDIDATES]; /* nearest first */
    unsigned found;
    uintptr_t end_before;
};

bool arena_reaches(uintptr_t lo, uintptr_t hi, const struct object *o)
{
    uintptr_t first = lo < o->lo ? lo : o->lo, last = hi > o->hi ? hi : o->hi;
    return last - first < (1ul << 31) - PATCH_PAGE;
}

static uintptr_t distance(const struct search *s, uintptr_t at)
{
    return at < s->o->lo ? s->o->lo - at : at - s->o->lo;
}

static void consider(struct search *s, uintptr_t at)
{
    if (!arena_reaches(at, at + s->bytes, s->o) ||
        (at < s->heap + HEAP_ROOM && at + s->bytes > s->heap))
        return;
    unsigned i = s->found < CANDIDATES ? s->found++ : CANDIDATES - 1;
    if (i == CANDIDATES - 1 && s->found == CANDIDATES && s->at[i] &&
        distance(s, s->at[i]) <= distance(s, at))
        return;
    for (; i > 0 && distance(s, s->at[i - 1]) > distance(s, at); i--)
        s->at[i] = s->at[i - 1];
    s->at[i] = at;
}

/* Consider both edges of a gap, so that the rest of it stays in one piece. */
static void consider_gap(struct search *s, uintptr_t lo, uintptr_t hi, bool below_stack)
{
    if (lo < MAPS_LOWEST)
        lo = MAPS_LOWEST;
    if (below_stack)
        hi = hi > MAPS_STACK_ROOM ? hi - MAPS_STACK_ROOM : 0;
    if (hi > MAPS_HIGHEST)
        hi = MAPS_HIGHEST;
    if (hi <= lo || hi - lo < s->bytes)
        return;
    if (!below_stack)
        consider(s, hi - s->bytes);
    consider(s, lo);
}

static bool behind(void *argument, const struct mapping *m)
{
    struct search *s = argument;
    if (m->lo > s->end_before)
        consider_gap(s, s->end_before, m->lo, m->stack);
    s->end_before = m->hi;
    return true;
}

/* Consider all gaps. Returns false if the list of mappings could not be read. */
static bool search_gaps(struct search *s)
{
    if (!maps_walk(behind, s))
        return false;
    if (s->end_before < MAPS_HIGHEST)
        consider_gap(s, s->end_before, MAPS_HIGHEST, false);
    return true;
}

uint8_t *arena_stubs(const struct object *o, size_t bytes)
{
    struct search s = {.o = o, .bytes = pages(bytes), .heap = prim_brk_now()};
    if (!search_gaps(&s))
        return NULL;
    for (unsigned i = 0; i < s.found; i++) {
        /* Other threads map memory, too, and kernels before 4.17 take the address for a hint. */
        uint8_t *p = prim_mmap((void *)s.at[i], s.bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (prim_is_error(p))
            continue;
        if (p == (uint8_t *)s.at[i])
            return p;
        prim_munmap(p, s.bytes);
    }
    return NULL;
}
