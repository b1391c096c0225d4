/* SPDX-License-Identifier: MIT
 *
 * A table of the futexes that threads wait on most, with the code that waits. It has few entries. A
 * new one replaces the entry with the fewest samples, and continues its count. (Metwally et al.,
 * "Efficient computation of frequent and top-k elements in data streams", ICDT'05.) So a futex with
 * many waits keeps its entry, and a count exceeds the truth by that of the replaced entry at most.
 *
 * A waiting thread only copies some words of its stack. The monitor keeps the words that are
 * addresses of code, and drops the rest, which may be private data. A reader has to guess which of
 * them are return addresses of this call, and not of an earlier one.
 */
#include "sched/profile.h"
#include "sched/user.h"
#include "prim/lock.h"
#include "prim/maps.h"

#include <string.h>

enum {
    WORDS = 48,
    FEW_WORDS = 8,
    /* each takes a walk through the list of mappings, during which the program cannot change
     * them */
    NEW_AT_A_TIME = 4,
};

struct entry {
    uintptr_t address;
    uint64_t samples;
    bool is_new; /* code[] has not been filled in */
    uintptr_t ip;
    uintptr_t word[WORDS];
    uint64_t code[LISSOM_LOCK_CODE];
};

static struct lock busy;
static struct entry table[LISSOM_MAX_LOCKS];
/* table is in use since the last fork; otherwise a child touches none of its pages */
static bool used;

/* Pre: busy. */
static struct entry *entry_of(uintptr_t address)
{
    struct entry *least = &table[0];
    for (unsigned i = 0; i < LISSOM_MAX_LOCKS; i++) {
        if (table[i].address == address)
            return &table[i];
        if (table[i].samples < least->samples)
            least = &table[i];
    }
    return least;
}

static void note(uintptr_t address, const struct user_registers *r)
{
    if (!lock_try(&busy))
        return;
    struct entry *h = entry_of(address);
    used = true;
    h->samples++;
    if (h->address != address) {
        h->address = address;
        h->ip = r->rip;
        h->is_new = true;
        memset(h->word, 0, sizeof h->word);
        /* The stack has fewer words near its beginning. */
        if (user_copy(lissom_self, h->word, (const void *)r->rsp, sizeof h->word))
            user_copy(lissom_self, h->word, (const void *)r->rsp, FEW_WORDS * sizeof h->word[0]);
    }
    lock_drop(&busy);
}

void profile_wait(const struct slot *s, uintptr_t address, const struct user_registers *r)
{
    if (__atomic_load_n(&record->stripe[s->index % LISSOM_STRIPES][LISSOM_C_blocks],
                        __ATOMIC_RELAXED) %
            PROFILE_EVERY ==
        0)
        note(address, r);
}

/* --- which words are code --------------------------------------------------------------------- */

struct search {
    struct entry *h;
    bool is_code[WORDS];
};

/* Skip the object that makes the call: callers of pthread_mutex_lock are wanted, not its
 * insides. */
static bool look(void *argument, const struct mapping *m)
{
    struct search *s = argument;
    bool is_wanted = m->executable && m->inode && !(s->h->ip >= m->lo && s->h->ip < m->hi) &&
                     !((uintptr_t)profile_wait >= m->lo && (uintptr_t)profile_wait < m->hi);
    for (unsigned i = 0; is_wanted && i < WORDS; i++)
        s->is_code[i] |= s->h->word[i] >= m->lo && s->h->word[i] < m->hi;
    return true;
}

/* Pre: h is a copy: the lock is not held while files are read. */
static void find_code(struct entry *h)
{
    struct search s = {.h = h};
    bool read = maps_walk(look, &s);
    memset(h->code, 0, sizeof h->code);
    h->code[0] = h->ip;
    for (unsigned i = 0, n = 1; read && i < WORDS && n < LISSOM_LOCK_CODE; i++)
        if (s.is_code[i])
            h->code[n++] = h->word[i];
}

/* Fill in the code of one new entry. Returns false if there is none. */
static bool find_one(struct entry *found)
{
    struct entry *h = NULL;
    lock_take(&busy);
    for (unsigned i = 0; !h && i < LISSOM_MAX_LOCKS; i++)
        if (table[i].samples && table[i].is_new)
            h = &table[i];
    if (h) {
        *found = *h;
        h->is_new = false;
    }
    lock_drop(&busy);
    if (!h)
        return false;
    find_code(found);
    lock_take(&busy);
    if (h->address == found->address)
        memcpy(h->code, found->code, sizeof h->code);
    lock_drop(&busy);
    return true;
}

void profile_read(struct lissom_lock_profile to[LISSOM_MAX_LOCKS])
{
    static struct entry found; /* too large for the monitor's stack */
    for (unsigned i = 0; i < NEW_AT_A_TIME && find_one(&found); i++)
        ;
    lock_take(&busy);
    for (unsigned i = 0; i < LISSOM_MAX_LOCKS; i++) {
        to[i] =
            (struct lissom_lock_profile){.address = table[i].address, .samples = table[i].samples};
        if (!table[i].is_new)
            memcpy(to[i].code, table[i].code, sizeof to[i].code);
    }
    lock_drop(&busy);
}

void profile_after_fork(void)
{
    busy.word = 0;
    if (used)
        memset(table, 0, sizeof table);
    used = false;
}
