/* SPDX-License-Identifier: MIT */
#include "spin/loops.h"
#include "prim/maps.h"
#include "sched/thread.h"

/* of record->loop[]; 0: its object was unmapped */
static uintptr_t address_of[LISSOM_MAX_LOOPS];

struct search {
    uintptr_t address;
    struct lissom_loop *loop;
    bool found;
};

static bool is_there(void *argument, const struct mapping *m)
{
    struct search *s = argument;
    if (s->address >= m->hi)
        return true;
    if (s->address >= m->lo && m->inode) {
        s->found = true;
        s->loop->offset = s->address - m->lo + m->offset;
        size_t n = m->name_length, room = sizeof s->loop->path - 1;
        size_t from = n > room ? n - room : 0;
        __builtin_memcpy(s->loop->path, m->name + from, n - from);
        s->loop->path[n - from] = 0;
    }
    return false;
}

static struct lissom_loop *find(uintptr_t address)
{
    for (uint32_t i = 0; i < record->loops; i++)
        if (address_of[i] == address)
            return &record->loop[i];
    return NULL;
}

static struct lissom_loop *add(uintptr_t address)
{
    uint32_t n = record->loops;
    if (n == LISSOM_MAX_LOOPS)
        return NULL;
    struct search s = {.address = address, .loop = &record->loop[n]};
    if (!maps_walk(is_there, &s) || !s.found)
        return NULL;
    address_of[n] = address;
    __atomic_store_n(&record->loops, n + 1, __ATOMIC_RELEASE);
    return s.loop;
}

struct lissom_loop *spin_loop_seen(const struct spin_result *r)
{
    struct lissom_loop *loop = find(r->loop);
    if (!loop)
        loop = add(r->loop);
    if (loop)
        loop->samples++;
    return loop;
}

void spin_loops_unmapped(uintptr_t base, size_t bytes)
{
    for (uint32_t i = 0; i < record->loops; i++)
        if (address_of[i] - base < bytes)
            address_of[i] = 0;
}

void spin_loops_after_fork(void)
{
    for (uint32_t i = 0; i < LISSOM_MAX_LOOPS; i++)
        address_of[i] = 0;
}
