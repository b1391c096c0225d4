/* SPDX-License-Identifier: MIT
 *
 * Find code that may be changed, and addresses where a stub may be.
 */
#include "prim/maps.h"
#include "prim/prim.h"
#include "spin/site.h"

/* Room for the heap to grow. Less than patch/arena.c leaves, which can choose its address: a stub
 * has only one. */
#define HEAP_ROOM (256ul << 20)

struct code {
    uintptr_t address;
    struct spin_range place;
    bool good;
};

/* Returns whether m may have sites. Code that a program generates may not: it may change at any
 * time. */
static bool is_code(const struct mapping *m)
{
    uintptr_t ours = (uintptr_t)spin_find_code;
    return (ours < m->lo || ours >= m->hi) && m->readable && m->executable && !m->writable &&
           m->is_private && m->inode;
}

/* Treat adjacent mappings of a file as one: making pages writable for a moment (patch/write.c)
 * splits a mapping. */
static bool look_for_code(void *argument, const struct mapping *m)
{
    struct code *c = argument;
    struct spin_range *p = &c->place;
    bool is = is_code(m);
    bool goes_on =
        is && m->lo == p->hi && m->inode == p->inode && m->offset == p->offset + (p->hi - p->lo);
    if (c->good && !goes_on)
        return false;
    if (!goes_on)
        *p = is ? (struct spin_range){m->lo, m->lo, m->inode, m->offset} : (struct spin_range){0};
    p->hi = is ? m->hi : 0;
    c->good |= is && c->address >= m->lo && c->address < m->hi;
    return c->good || c->address >= m->hi;
}

bool spin_find_code(uintptr_t address, struct spin_range *place)
{
    struct code c = {.address = address};
    if (!maps_walk(look_for_code, &c) || !c.good)
        return false;
    *place = c.place;
    return true;
}

struct file_search {
    uint64_t inode, offset;
    uintptr_t address; /* 0: not found */
};

static bool look_in_file(void *argument, const struct mapping *m)
{
    struct file_search *s = argument;
    if (is_code(m) && m->inode == s->inode && s->offset - m->offset < m->hi - m->lo)
        s->address = m->lo + (s->offset - m->offset);
    return !s->address;
}

uintptr_t spin_find_in_file(uint64_t inode, uint64_t offset)
{
    struct file_search s = {.inode = inode, .offset = offset};
    maps_walk(look_in_file, &s);
    return s.address;
}

struct gap {
    uintptr_t lo, hi;
    bool taken;
};

static bool look_for_gap(void *argument, const struct mapping *m)
{
    struct gap *g = argument;
    uintptr_t lo = m->stack ? m->lo - MAPS_STACK_ROOM : m->lo,
              hi = m->heap ? m->hi + HEAP_ROOM : m->hi;
    g->taken |= g->lo < hi && lo < g->hi;
    return !g->taken;
}

bool spin_stub_fits(uintptr_t stub, size_t bytes)
{
    uintptr_t heap = prim_brk_now(); /* before there is a heap, no mapping has that name */
    struct gap g = {stub, stub + bytes, stub < MAPS_LOWEST || stub > MAPS_HIGHEST - bytes};
    g.taken |= g.lo < heap + HEAP_ROOM && heap < g.hi;
    return !g.taken && maps_walk(look_for_gap, &g) && !g.taken;
}
