/* SPDX-License-Identifier: MIT */
#include "spin/exchange.h"
#include "abi.h"
#include "prim/hash.h"
#include "sched/thread.h"
#include "spin/site.h"

enum {
    LOOP_BYTES = 16384, /* at most, around the site */
    CHUNK = 64,
    LAST_INSN = 15,
};

static struct {
    const struct lissom_domain *domain;
    uint32_t made;                    /* next own site to publish */
    uint64_t taken;                   /* domain's sites that were tried */
    uint32_t offs;                    /* spin_sites_offs() at that time */
    uint64_t own[LISSOM_FOUND_SITES]; /* numbers of own sites; 0: none */
} done;

/* Hash the code from the loop's lowest to its highest address, and store its mapping in `place`.
 * Returns false if the code is not in a single mapping of a file. */
static bool hash_code(const struct spin_site_note *n, uint64_t *hash, struct spin_range *place)
{
    uintptr_t lo = n->address, hi = n->address;
    const uintptr_t others[] = {n->head, n->of_loop};
    for (int i = 0; i < 2; i++) {
        lo = others[i] < lo ? others[i] : lo;
        hi = others[i] > hi ? others[i] : hi;
    }
    hi += LAST_INSN;
    if (hi - lo > LOOP_BYTES || !spin_find_code(n->address, place) || lo < place->lo ||
        hi > place->hi)
        return false;
    *hash = HASH_BEGIN;
    for (uintptr_t at = lo; at < hi; at += CHUNK) {
        uint64_t code[CHUNK / 8] = {0};
        size_t bytes = hi - at < CHUNK ? hi - at : CHUNK;
        if (lissom_guarded_copy(code, (const void *)at, bytes))
            return false;
        spin_sites_original(at, code, bytes);
        for (int i = 0; i < CHUNK / 8; i++)
            *hash = hash_add(*hash, code[i]);
    }
    *hash = hash_end(*hash);
    return true;
}

/* Returns `address`, or the site's if it is far away. Functions of other objects are elsewhere in
 * other processes. The loop's lowest address only identifies it, and its head only speeds up
 * proofs, so the site's address will do. */
static uintptr_t near_site(const struct spin_site_note *n, uintptr_t address)
{
    return address + LOOP_BYTES / 4 - n->address < LOOP_BYTES / 2 ? address : n->address;
}

static void tell(struct lissom_domain *d, struct spin_site_note *n)
{
    n->head = near_site(n, n->head);
    n->of_loop = near_site(n, n->of_loop);
    struct lissom_found_site s = {
        .head = (int64_t)(n->head - n->address),
        .of_loop = (int64_t)(n->of_loop - n->address),
        .flags = (n->pauses ? LISSOM_FOUND_PAUSES : 0) | (n->hint ? LISSOM_FOUND_HINT : 0) |
                 (n->counts ? LISSOM_FOUND_COUNTS : 0) | (n->often ? LISSOM_FOUND_OFTEN : 0),
    };
    struct spin_range place;
    if (!hash_code(n, &s.code, &place))
        return;
    s.inode = place.inode;
    s.offset = place.offset + (n->address - place.lo);
    for (int i = 0; i < LISSOM_FOUND_SITES; i++)
        if (d->site[i].inode == s.inode && d->site[i].offset == s.offset &&
            d->site[i].code == s.code)
            return;
    uint64_t number = __atomic_add_fetch(&d->found, 1, __ATOMIC_ACQ_REL);
    struct lissom_found_site *to = &d->site[number % LISSOM_FOUND_SITES];
    done.own[number % LISSOM_FOUND_SITES] = number;
    __atomic_store_n(&to->number, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *to = s;
    __atomic_store_n(&to->number, number, __ATOMIC_RELEASE);
}

/* Store in n the address of the site in this process. Returns false if its code is not here. */
static bool find(const void *argument, struct spin_site_note *n, struct spin_range *place)
{
    const struct lissom_found_site *s = argument;
    uintptr_t at = spin_find_in_file(s->inode, s->offset);
    *n = (struct spin_site_note){at,
                                 at + (uintptr_t)s->head,
                                 at + (uintptr_t)s->of_loop,
                                 s->flags & LISSOM_FOUND_PAUSES,
                                 s->flags & LISSOM_FOUND_HINT,
                                 s->flags & LISSOM_FOUND_COUNTS,
                                 s->flags & LISSOM_FOUND_OFTEN};
    uint64_t code;
    return at && hash_code(n, &code, place) && code == s->code;
}

static void take(const struct lissom_domain *d, uint64_t number)
{
    const struct lissom_found_site *from = &d->site[number % LISSOM_FOUND_SITES];
    if (done.own[number % LISSOM_FOUND_SITES] == number ||
        __atomic_load_n(&from->number, __ATOMIC_ACQUIRE) != number)
        return;
    const struct lissom_found_site s = *from;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&from->number, __ATOMIC_RELAXED) == number)
        spin_site_take(find, &s);
}

void spin_exchange(struct lissom_domain *d, bool takes)
{
    struct spin_site_note note;
    if (d != done.domain) {
        __builtin_memset(&done, 0, sizeof done);
        done.domain = d;
        if (d)
            spin_sites_exchanged();
        return;
    }
    if (!d)
        return;
    takes &= done.offs == spin_sites_offs() && !sched.traced;
    done.offs = spin_sites_offs();
    while (spin_site_made(&done.made, &note))
        tell(d, &note);
    uint64_t found = __atomic_load_n(&d->found, __ATOMIC_ACQUIRE);
    if (!takes)
        done.taken = 0;
    else if (done.taken < found) {
        if (found - done.taken > LISSOM_FOUND_SITES)
            done.taken = found - LISSOM_FOUND_SITES;
        while (done.taken < found)
            take(d, ++done.taken);
    }
}
