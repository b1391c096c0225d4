/* SPDX-License-Identifier: MIT */
#include "spin/site.h"
#include "patch/internal.h"
#include "prim/lock.h"
#include "prim/prim.h"
#include "prim/task.h"
#include "sched/thread.h"
#include "spin/probe.h"
#include "spin/loops.h"

#include <sys/mman.h>

enum {
    SITES = 128,
    JUMP = 0xe9,     /* first byte of a jump */
    JUMP_BYTES = 5,  /* length of a jump */
    STUB_BYTES = 64, /* the longest stub, for a jump, has 62 */
    /* offset from `go_on`: address of lissom_spin_entry or lissom_spin_entry_seldom */
    ENTRY_WORD = 32,
    FAILURES = 64,
    LONG_TURN = 64, /* instructions: entering the runtime costs less than such an iteration */
};

void lissom_spin_entry(void);
void lissom_spin_entry_seldom(void);

static struct lock making;
static struct spin_site sites[SITES];
static uint32_t used; /* entries ever made; read without a lock */
/* Loops in which no site can be made: not to be tried at each scan. */
static uintptr_t siteless[FAILURES];
static uint32_t siteless_next;

static uint32_t sites_used(void) { return __atomic_load_n(&used, __ATOMIC_ACQUIRE); }
static uint8_t state_of(const struct spin_site *p)
{
    return __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
}
/* Returns whether p was made and its code has not been unmapped since. */
static bool is_live(const struct spin_site *p)
{
    return state_of(p) != SITE_UNUSED && state_of(p) != SITE_GONE;
}
static bool may_be_on(const struct spin_site *p)
{
    return state_of(p) == SITE_OFF || state_of(p) == SITE_ON;
}
static void set_state(struct spin_site *p, uint8_t state)
{
    __atomic_store_n(&p->state, state, __ATOMIC_RELEASE);
}

/* --- the byte; caller holds `making` ---------------------------------------------------------- */

static bool write_code(uintptr_t at, const void *bytes, size_t n)
{
    int memory = patch_memory();
    bool done = false;
    if (patch_write_begin(memory, at, at + n) == 0) {
        done = patch_write(memory, at, bytes, n);
        patch_write_end();
    }
    patch_memory_close(memory);
    return done;
}

static bool write_byte(const struct spin_site *p, uint8_t byte)
{
    return write_code(p->address, &byte, 1);
}

static bool has_byte(const struct spin_site *p, uint8_t byte)
{
    uint8_t is;
    return !lissom_guarded_copy(&is, (const void *)p->address, 1) && is == byte;
}

/* Returns whether p has the program's code, and a jump there would lead to its stub. */
static bool is_restored(const struct spin_site *p)
{
    uint8_t is[JUMP_BYTES];
    int32_t disp;
    if (lissom_guarded_copy(is, (const void *)p->address, sizeof is))
        return false;
    __builtin_memcpy(&disp, is + 1, sizeof disp);
    return is[0] == p->original && p->address + JUMP_BYTES + (uintptr_t)(intptr_t)disp == p->stub;
}

/* Switch p on, also if it is on and `lissom gdb` has restored its code. Returns false if its bytes
 * are not the program's: a debugger may have put its own there. */
static bool switch_on(struct spin_site *p)
{
    if (!is_restored(p) || !write_byte(p, JUMP))
        return false;
    set_state(p, SITE_ON);
    count(spin_sites);
    return true;
}

/* --- the stub --------------------------------------------------------------------------------- */

/* Store the stub of p in `bytes`. Returns false if it cannot be encoded. */
static bool write_stub(struct spin_site *p, const struct insn *in, uint8_t bytes[STUB_BYTES])
{
    struct emitter e = {bytes, p->stub, false};
    uintptr_t next = p->address + in->len;
    p->branch = in->kind != INSN_PLAIN;
    if (in->kind == INSN_JCC) {
        EMIT(&e, 0x0f, 0x80 | in->condition);
        emit_rel32(&e, p->stub + 11);
        emit_jump(&e, next);
    }
    /* The pause comes first: a thread that was away continues at once. */
    if (p->pause)
        EMIT(&e, 0xf3, 0x90);
    p->go_on = e.address + 11;
    EMIT(&e, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp),%rsp */
    EMIT(&e, 0xff, 0x15);                   /* call *entry_word(%rip) */
    emit_rel32(&e, p->go_on + ENTRY_WORD);
    if (p->branch) {
        emit_jump(&e, in->target);
    } else {
        if (!p->pause)
            emit_insn(&e, p->address, in);
        emit_jump(&e, next);
    }
    uint8_t *words = bytes + (p->go_on - p->stub);
    void (*entry)(void) = p->seldom ? lissom_spin_entry_seldom : lissom_spin_entry;
    __builtin_memcpy(words + SPIN_SITE_WORD, &p, 8);
    __builtin_memcpy(words + ENTRY_WORD, &entry, 8);
    return !e.bad;
}

/* Pages with stubs. They stay mapped. A page may hold several stubs: inlined copies of a loop are
 * close to each other, and so are their stubs. */
static uintptr_t stub_page[2 * SITES];
static uint32_t stub_pages;

static bool map_page(uintptr_t page)
{
    for (uint32_t i = 0; i < stub_pages; i++)
        if (stub_page[i] == page)
            return true;
    if (stub_pages == sizeof stub_page / sizeof *stub_page || !spin_stub_fits(page, PATCH_PAGE))
        return false;
    void *m = prim_mmap((void *)page, PATCH_PAGE, PROT_READ | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (prim_is_error(m))
        return false;
    if (m != (void *)page) { /* older kernels take the address for a hint */
        prim_munmap(m, PATCH_PAGE);
        return false;
    }
    stub_page[stub_pages++] = page;
    return true;
}

/* Returns whether another stub is in the way of p's. A stub of an unmapped object is not: a thread
 * in it had no code to return to. Its entry may be reused while threads keep proofs of the old
 * site; they are for other code. */
static bool stub_overlaps(const struct spin_site *p)
{
    bool any = false;
    for (uint32_t i = 0; i < used; i++) {
        struct spin_site *other = &sites[i];
        if (!other->stub ||
            (other->stub - p->stub >= STUB_BYTES && p->stub - other->stub >= STUB_BYTES))
            continue;
        if (state_of(other) == SITE_GONE) {
            other->stub = other->go_on = 0;
            set_state(other, SITE_UNUSED);
        } else if (other != p) {
            any = true;
        }
    }
    return any;
}

static bool make_stub(struct spin_site *p, const struct insn *in)
{
    uint8_t bytes[STUB_BYTES];
    uintptr_t last = p->stub + STUB_BYTES - 1;
    __builtin_memset(bytes, 0xcc, sizeof bytes);
    return write_stub(p, in, bytes) && !stub_overlaps(p) && map_page(p->stub & ~(PATCH_PAGE - 1)) &&
           map_page(last & ~(PATCH_PAGE - 1)) && write_code(p->stub, bytes, sizeof bytes);
}

/* --- making sites; caller holds `making` ------------------------------------------------------ */

static struct spin_site *site_of(uintptr_t address)
{
    for (uint32_t i = 0; address && i < used; i++)
        if (sites[i].address == address && is_live(&sites[i]))
            return &sites[i];
    return NULL;
}

/* Returns the live site of a loop, or NULL. */
static struct spin_site *site_in(uintptr_t loop)
{
    for (uint32_t i = 0; i < used; i++)
        if (sites[i].of_loop == loop && is_live(&sites[i]))
            return &sites[i];
    return NULL;
}

static struct spin_site *unused(void)
{
    for (uint32_t i = 0; i < used; i++)
        if (state_of(&sites[i]) == SITE_UNUSED)
            return &sites[i];
    return used < SITES ? &sites[used] : NULL;
}

/* Returns whether a jump at `address` would overlap the jump of another site. */
static bool overlaps(uintptr_t address)
{
    for (uint32_t i = 0; i < used; i++)
        if (is_live(&sites[i]) &&
            (address - sites[i].address < JUMP_BYTES || sites[i].address - address < JUMP_BYTES))
            return true;
    return false;
}

static bool make(const struct spin_site_note *note, const struct spin_range *place,
                 struct lissom_loop *loop)
{
    uintptr_t address = note->address;
    struct spin_site *p = overlaps(address) ? NULL : unused();
    struct insn in;
    int32_t disp;
    if (!p || address + 15 > place->hi || !code_decode(address, place->hi, &in) ||
        (in.kind != INSN_PLAIN && in.kind != INSN_JCC && in.kind != INSN_JMP))
        return false;
    bool pause = in.len == 2 && !__builtin_memcmp((const void *)address, "\xf3\x90", 2);
    if (note->hint && !pause)
        return false;
    __builtin_memcpy(&disp, (const void *)(address + 1), 4);
    *p = (struct spin_site){.address = address,
                            .stub = address + 5 + (uintptr_t)(intptr_t)disp,
                            .lo = place->lo,
                            .hi = place->hi,
                            .head = note->head,
                            .of_loop = note->of_loop,
                            .pauses = note->pauses,
                            .hint = note->hint,
                            .counts = note->counts,
                            .seldom = note->counts && !note->pauses && !note->often,
                            .original = *(const uint8_t *)address,
                            .length = in.len,
                            .pause = pause,
                            .loop = loop};
    if (!make_stub(p, &in)) {
        p->stub = 0;
        return false;
    }
    set_state(p, SITE_OFF);
    if (loop)
        loop->site = 1;
    if (p == &sites[used])
        __atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
    return switch_on(p);
}

static bool in_trail(const struct spin_result *r, uintptr_t at)
{
    for (uint32_t i = 0; i < r->trail_length; i++)
        if (r->trail[i] == at)
            return true;
    return false;
}

static uint32_t candidates_in(const struct spin_result *r) { return r->trail_length + 4u; }

/* Returns instruction i of the loop to try, 0 <= i < candidates_in(r); 0: none. The order: first
 * the loop's own function, with its `pause`, the backward jump, and from there backwards. Then a
 * `pause` or jump in a function that the loop calls, which all other callers would hit, too. */
static uintptr_t candidate_in(const struct spin_result *r, uint32_t i)
{
    uint32_t n = r->trail_length;
    if (i >= 2 && i < 2 + n) {
        uintptr_t at = r->trail[n + 1 - i];
        return at == r->pause || at == r->back ? 0 : at;
    }
    uintptr_t at = i % (n + 2) ? r->back : r->pause;
    return in_trail(r, at) == (i < 2) ? at : 0;
}

/* Returns true if the loop has a site, or can never have one. Switches on a site that is off. */
static bool known(const struct spin_result *r)
{
    for (uint32_t i = 0; i < FAILURES; i++)
        if (siteless[i] == r->loop)
            return true;
    /* A trail that is cut off may lack the site. */
    struct spin_site *p = r->trail_length == SPIN_TRAIL ? site_in(r->loop) : NULL;
    for (uint32_t i = 0; !p && i < candidates_in(r); i++)
        p = site_of(candidate_in(r, i));
    if (p && may_be_on(p))
        switch_on(p);
    return p;
}

static void site_make(const struct spin_result *r, struct lissom_loop *loop)
{
    bool done = known(r);
    bool often = r->turn >= LONG_TURN && __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED);
    struct spin_range place = {0};
    for (uint32_t i = 0; !done && i < candidates_in(r); i++) {
        uintptr_t at = candidate_in(r, i);
        if (!at)
            continue;
        if ((at >= place.lo && at < place.hi) || spin_find_code(at, &place))
            done = make(&(struct spin_site_note){at, r->head, r->loop, r->pause,
                                                 r->verdict == SPIN_PAUSE_ONLY,
                                                 r->verdict == SPIN_COUNTED, often},
                        &place, loop);
    }
    if (!done) {
        siteless[siteless_next++ % FAILURES] = r->loop;
        if (loop)
            loop->site = 2;
    }
}

bool spin_site_made(uint32_t *index, struct spin_site_note *note)
{
    bool found = false;
    lock_take(&making);
    for (; *index < used && !found; ++*index) {
        const struct spin_site *p = &sites[*index];
        found = is_live(p) && !p->foreign;
        *note = (struct spin_site_note){p->address, p->head,   p->of_loop, p->pauses,
                                        p->hint,    p->counts, !p->seldom};
    }
    lock_drop(&making);
    return found;
}

/* Sites may be taken from other processes. Their code is not known in advance, so no code at all
 * may be unmapped meanwhile. */
static bool exchanged;

void spin_sites_exchanged(void) { __atomic_store_n(&exchanged, true, __ATOMIC_RELEASE); }

void spin_site_take(bool (*find)(const void *argument, struct spin_site_note *note,
                                 struct spin_range *place),
                    const void *argument)
{
    struct spin_site_note note;
    struct spin_range place;
    lock_take(&making);
    if (find(argument, &note, &place)) {
        struct spin_site *p = site_of(note.address);
        if (p && may_be_on(p))
            switch_on(p);
        if (!p && !site_in(note.of_loop) && make(&note, &place, NULL)) {
            site_of(note.address)->foreign = true;
            count(spin_sites_taken);
        }
    }
    lock_drop(&making);
}

/* Switch off all sites, or, if only_retiring, those asked to retire, for good. A site that is off
 * may have a jump: a debugger has restored what was below its breakpoint. */
static void switch_off(bool only_retiring)
{
    if (!sites_used())
        return;
    lock_take(&making);
    for (uint32_t i = 0; i < used; i++) {
        struct spin_site *p = &sites[i];
        bool retires = state_of(p) == SITE_RETIRING;
        if (!is_live(p) || (only_retiring && !retires))
            continue;
        if (has_byte(p, JUMP))
            write_byte(p, p->original);
        if (retires && p->loop)
            p->loop->retired = 1;
        if (retires || may_be_on(p))
            set_state(p, retires ? SITE_RETIRED : SITE_OFF);
    }
    lock_drop(&making);
}

static uint32_t offs;

uint32_t spin_sites_offs(void) { return offs; }

void spin_sites_off(void)
{
    offs++;
    switch_off(false);
}

void spin_site_retire(struct spin_site *p)
{
    uint8_t on = SITE_ON;
    __atomic_compare_exchange_n(&p->state, &on, SITE_RETIRING, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

/* Request to the monitor, one at a time: a loop whose request was ignored is scanned again. */
static struct {
    uint32_t state; /* 0: empty, 1: being written, 2: full */
    bool site;
    bool stale; /* some of its code was unmapped; under `making` */
    struct spin_result result;
} asked;

void spin_site_ask(const struct spin_result *r, bool site)
{
    uint32_t empty = 0;
    if (!__atomic_compare_exchange_n(&asked.state, &empty, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    asked.result = *r;
    asked.site = site;
    asked.stale = false;
    __atomic_store_n(&asked.state, 2, __ATOMIC_RELEASE);
}

static bool is_asked(void) { return __atomic_load_n(&asked.state, __ATOMIC_ACQUIRE) == 2; }

void spin_sites_serve(void)
{
    switch_off(true);
    if (!is_asked())
        return;
    struct lissom_loop *loop = spin_loop_seen(&asked.result);
    lock_take(&making);
    if (asked.site && !asked.stale && !task_is_traced((int32_t)prim_syscall3(SYS_gettid, 0, 0, 0)))
        site_make(&asked.result, loop);
    lock_drop(&making);
    __atomic_store_n(&asked.state, 0, __ATOMIC_RELEASE);
}

/* Returns whether the range contains code of the requested loop. */
static bool is_asked_about(uintptr_t base, size_t bytes)
{
    const struct spin_result *r = &asked.result;
    bool is = is_asked() && (r->head - base < bytes || r->loop - base < bytes);
    for (uint32_t i = 0; is_asked() && !is && i < candidates_in(r); i++)
        is = candidate_in(r, i) - base < bytes;
    return is;
}

/* Unmap under `making`: the monitor reads code while it makes sites. */
long spin_sites_munmap(uintptr_t base, size_t bytes)
{
    bool ours = __atomic_load_n(&exchanged, __ATOMIC_ACQUIRE);
    if (!sites_used() && !is_asked() && !ours)
        return prim_munmap((void *)base, bytes);
    lock_take(&making);
    for (uint32_t i = 0; i < used; i++) {
        struct spin_site *p = &sites[i];
        if (is_live(p) && p->address - base < bytes) {
            set_state(p, SITE_GONE);
            ours = true;
        }
    }
    for (uint32_t i = 0; i < FAILURES; i++)
        if (siteless[i] && siteless[i] - base < bytes)
            siteless[i] = 0;
    if (is_asked_about(base, bytes))
        asked.stale = ours = true;
    if (!ours)
        lock_drop(&making); /* unmapping may take long */
    long r = prim_munmap((void *)base, bytes);
    spin_code_changed();
    if (ours)
        lock_drop(&making);
    return r;
}

/* The child has one thread, which needs no sites. */
void spin_sites_after_fork(void)
{
    making.word = asked.state = 0;
    spin_probe_after_fork();
    spin_sites_off();
    for (uint32_t i = 0; i < used; i++)
        sites[i].loop = NULL;
}

/* --- from an instruction pointer -------------------------------------------------------------- */

struct spin_site *spin_site_at(uintptr_t ip)
{
    for (uint32_t i = 0, n = sites_used(); i < n; i++)
        if (ip - sites[i].stub < STUB_BYTES && sites[i].stub)
            return &sites[i];
    return NULL;
}

uintptr_t spin_site_view(const struct spin_site *p, uintptr_t ip, long *rsp_off)
{
    *rsp_off = ip == p->go_on - 6 ? 128 : 0;
    if (p->pause)
        return ip > p->stub ? p->address + p->length : p->address;
    return !p->branch && ip > p->go_on ? p->address + p->length : p->address;
}

void spin_sites_original(uintptr_t address, void *copy, size_t bytes)
{
    for (uint32_t i = 0, n = sites_used(); i < n; i++)
        if (sites[i].address - address < bytes &&
            ((uint8_t *)copy)[sites[i].address - address] == JUMP && is_live(&sites[i]))
            ((uint8_t *)copy)[sites[i].address - address] = sites[i].original;
}
