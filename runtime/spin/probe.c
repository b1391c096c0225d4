/* SPDX-License-Identifier: MIT */
#include "spin/probe.h"
#include "prim/lock.h"
#include "prim/maps.h"
#include "sched/slots.h"
#include "sched/thread.h"
#include "sched/waiting.h"
#include "spin/site.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

enum {
    BUDGET = 2000,      /* instructions: 30 to 50 us for a working thread */
    REGISTERS = 0xffff, /* bits of spin_result.inputs */
    /* bits of rflags */
    FLAG_CARRY = 1,
    FLAG_OTHERS = 0x4 | 0x40 | 0x80 | 0x800, /* parity, zero, sign, overflow */
};

/* Interpreter state of a slot, made on first use. One thread of the slot is interpreted at a
 * time. */
struct probing {
    struct lock lock;
    uint32_t code_version;
    struct spin_scratch scratch;
};
static struct probing *probing[LISSOM_MAX_SLOTS];
static uint32_t code_version;

void spin_code_changed(void) { __atomic_fetch_add(&code_version, 1, __ATOMIC_RELEASE); }

void spin_probe_after_fork(void)
{
    for (uint32_t i = 0; i < LISSOM_MAX_SLOTS; i++)
        if (probing[i])
            probing[i]->lock.word = 0;
}

/* Where the kernel publishes the time for the vdso: one or two consecutive mappings. Set once. */
static struct {
    uintptr_t lo, hi;
} clock_pages;

static bool note_clock_pages(void *argument, const struct mapping *m)
{
    static const char name[] = "[vvar";
    (void)argument;
    if (m->name_length < sizeof name - 1 || __builtin_memcmp(m->name, name, sizeof name - 1))
        return true;
    if (!clock_pages.lo)
        clock_pages.lo = m->lo;
    __atomic_store_n(&clock_pages.hi, m->hi, __ATOMIC_RELAXED);
    return true;
}

/* Mapping of libc's code. Set once. */
static struct spin_range libc_code;

static void find_libc(void)
{
    struct spin_range place;
    if (spin_find_code((uintptr_t)sched_yield, &place)) {
        libc_code.lo = place.lo;
        __atomic_store_n(&libc_code.hi, place.hi, __ATOMIC_RELEASE);
    }
}

/* Returns the state for the slot, zeroed if it is new, or NULL. If two threads make it, the first
 * one wins. */
static struct probing *scratch_of(const struct slot *s)
{
    struct probing *l = __atomic_load_n(&probing[s->index], __ATOMIC_ACQUIRE), *expected = NULL;
    if (l)
        return l;
    l = prim_mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (prim_is_error(l))
        return NULL;
    if (!__atomic_load_n(&clock_pages.hi, __ATOMIC_RELAXED))
        maps_walk(note_clock_pages, NULL);
    if (!__atomic_load_n(&libc_code.hi, __ATOMIC_RELAXED))
        find_libc();
    if (__atomic_compare_exchange_n(&probing[s->index], &expected, l, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return l;
    prim_munmap(l, sizeof *l);
    return expected;
}

static long load(uintptr_t address, void *to, unsigned bytes)
{
    if (address >= 0x7ffffffff000ul - bytes)
        return -EFAULT;
    return lissom_guarded_copy(to, (const void *)address, bytes);
}

/* Fetch code from the stub of a patched system call. From where the stub checks the number of the
 * call: the original `syscall`, and a jump over the runtime's code to what follows. A redirected
 * function counts as a call, too. Returns false at displaced instructions, which are the
 * program's. */
static bool fetch_call(const struct patch_site *p, uintptr_t address, void *to, unsigned bytes)
{
    uint8_t code[15 + 2] = {0x0f, 0x05, 0xe9}, *from = code;
    uintptr_t call = p->stub;
    for (unsigned i = 0; i < p->insns; i++)
        if (p->window + p->map[i].native == p->syscall)
            call = p->stub + p->map[i].stub;
    if (bytes > 15 || address < call || address >= p->after)
        return false;
    int32_t over = (int32_t)(p->after - (call + 7));
    __builtin_memcpy(code + 3, &over, sizeof over);
    if (p->direct == p->after)
        __builtin_memcpy(code, "\xcd\x80", 2); /* int 0x80 */
    else if (address == call + 2)
        from += 2;
    __builtin_memcpy(to, from, bytes);
    return true;
}

static long fetch(uintptr_t address, void *to, unsigned bytes)
{
    const struct patch_site *call = patch_site_at(address);
    if (call && fetch_call(call, address, to, bytes))
        return 0;
    long r = load(address, to, bytes);
    if (!r)
        spin_sites_original(address, to, bytes);
    return r;
}

static uint64_t fs_base(void)
{
    uint64_t base = 0;
    if (sched.user_switch)
        __asm__ volatile("rdfsbase %0" : "=r"(base));
    else
        /* The first word of the thread control block is its own address. */
        __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
    return base;
}

struct spin_registers spin_registers_at(const struct user_registers *r, uint64_t rax, uint64_t rcx,
                                        uint64_t r11, uintptr_t rip)
{
    return (struct spin_registers){
        .r = {rax, rcx, (uint64_t)r->rdx, (uint64_t)r->rbx, r->rsp, (uint64_t)r->rbp,
              (uint64_t)r->rsi, (uint64_t)r->rdi, (uint64_t)r->r8, (uint64_t)r->r9,
              (uint64_t)r->r10, r11, (uint64_t)r->r12, (uint64_t)r->r13, (uint64_t)r->r14,
              (uint64_t)r->r15},
        .rip = rip,
        .flags = r->flags,
    };
}

bool spin_probe(const struct thread *t, const struct spin_registers *from,
                const struct spin_site *site, struct spin_result *r)
{
    struct probing *l = scratch_of(t->slot);
    if (!l || !lock_try(&l->lock))
        return false;
    struct spin_config config = {.load = load, .fetch = fetch, .budget = BUDGET};
    if (site) {
        config.same_lo = site->lo;
        config.same_hi = site->hi;
        config.libc_hi = __atomic_load_n(&libc_code.hi, __ATOMIC_ACQUIRE);
        config.libc_lo = libc_code.lo;
        config.head = site->head;
        config.yields = site->yields;
    }
    config.find_pauses = !config.same_hi;
    config.alone = __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED) &&
                   slots_one_is_busy() && !slots_anything_ready();
    config.time = tsc();
    config.clock_lo = clock_pages.lo;
    config.clock_hi = __atomic_load_n(&clock_pages.hi, __ATOMIC_RELAXED);
    uint32_t version = __atomic_load_n(&code_version, __ATOMIC_ACQUIRE);
    if (l->code_version != version) {
        l->code_version = version;
        config.same_lo = config.same_hi = 0; /* discard all decoded instructions */
    }
    struct spin_registers registers = *from;
    registers.fs_base = fs_base();
    spin_interpret(&config, &registers, &l->scratch, r);
    lock_drop(&l->lock);
    return true;
}

bool spin_may_give_way(const struct thread *t)
{
    return t->has_slot && !t->kernel_has_mask && t->clone_state == CLONE_NONE &&
           !sched.native_waits;
}

bool spin_is_wait(const struct spin_result *r)
{
    /* A loop that counts without end may be the work itself. */
    return r->verdict == SPIN_ENDLESS || r->verdict == SPIN_PAUSE_ONLY ||
           (r->verdict == SPIN_COUNTED && r->remaining != SPIN_TURNS_UNBOUNDED);
}

/* Add the aligned 32-bit words of a load, as guarded loads read them. Returns false if there is no
 * room, or the load crosses a word boundary. */
static bool add_words(struct wait_word *word, uint32_t *words, uint32_t most,
                      const struct spin_load *l)
{
    uint32_t shift = (uint32_t)(l->address & 3) * 8, bits = l->bytes * 8u;
    if (shift + bits > 32 && (shift || l->bytes != 8))
        return false;
    for (uint32_t half = 0; half < (l->bytes == 8 ? 2u : 1u); half++) {
        struct wait_word w = {
            .address = (l->address & ~3ul) + half * 4,
            .value = (uint32_t)(l->value >> (half * 32)) << shift,
            .mask = (bits >= 32 ? ~0u : (1u << bits) - 1) << shift,
        };
        if (*words == most)
            return false;
        word[(*words)++] = w;
    }
    return true;
}

static bool add(struct thread *t, const struct spin_load *l)
{
    return add_words(t->wait_word, &t->wait_words, WAIT_WORDS, l);
}

bool spin_remember(struct thread *t, const struct spin_result *r)
{
    t->wait_words = 0;
    t->wait_counted = r->verdict == SPIN_COUNTED;
    if (r->verdict == SPIN_PAUSE_ONLY || r->more_loads)
        return false;
    for (uint32_t i = 0; i < r->loads; i++)
        if (!r->load[i].stack && !add(t, &r->load[i])) {
            t->wait_words = 0;
            return false;
        }
    /* A word on the thread's own stack is usually a local variable. But other threads may have its
     * address, and end the wait by a store to it. */
    for (uint32_t i = 0; i < r->loads; i++)
        if (r->load[i].stack && !add(t, &r->load[i]))
            return false;
    return true;
}

static bool same_inputs(const struct proof *p, const struct spin_registers *now)
{
    uint64_t differ = p->rip ^ now->rip;
    if (p->inputs & SPIN_INPUT_CARRY)
        differ |= (p->flags ^ now->flags) & FLAG_CARRY;
    if (p->inputs & SPIN_INPUT_FLAGS)
        differ |= (p->flags ^ now->flags) & FLAG_OTHERS;
    const uint64_t *r = p->r;
    for (uint32_t left = p->inputs & REGISTERS; left; left &= left - 1)
        differ |= *r++ ^ now->r[__builtin_ctz(left)];
    return !differ;
}

/* Returns the entry to overwrite: that of another wait with the same inputs, whose words have
 * changed since, or else the oldest. */
static struct proof *place_of(struct thread *t, const struct spin_site *site,
                              const struct spin_registers *from)
{
    for (struct proof *p = t->proof; p < t->proof + PROOFS; p++)
        if (p->site == site && same_inputs(p, from))
            return p;
    return &t->proof[t->proofs_made++ % PROOFS];
}

void spin_note_proof(struct thread *t, const struct spin_site *site,
                     const struct spin_registers *from, const struct spin_result *r)
{
    bool all = spin_remember(t, r);
    if (r->verdict != SPIN_ENDLESS || !r->repeatable || !all || !t->wait_words ||
        t->wait_words > PROOF_WORDS || __builtin_popcount(r->inputs & REGISTERS) > PROOF_REGISTERS)
        return;
    struct proof *p = place_of(t, site, from);
    p->site = site;
    p->rip = from->rip;
    p->code_version = __atomic_load_n(&code_version, __ATOMIC_RELAXED);
    p->inputs = r->inputs;
    p->flags = from->flags;
    uint64_t *kept = p->r;
    for (uint32_t left = r->inputs & REGISTERS; left; left &= left - 1)
        *kept++ = from->r[__builtin_ctz(left)];
    p->words = p->wait_words = t->wait_words;
    __builtin_memcpy(p->word, t->wait_word, p->words * sizeof *p->word);
    for (uint32_t i = 0; i < r->earlier_loads; i++)
        if (!add_words(p->word, &p->words, PROOF_WORDS, &r->earlier[i]))
            p->site = NULL;
}

enum spin_kept spin_kept_proof(struct thread *t, const struct spin_site *site,
                               const struct spin_registers *now)
{
    enum spin_kept kept = SPIN_KEPT_NONE;
    for (struct proof *p = t->proof; p < t->proof + PROOFS; p++) {
        if (p->site != site || !same_inputs(p, now) ||
            p->code_version != __atomic_load_n(&code_version, __ATOMIC_RELAXED))
            continue;
        if (waiting_changed(p->word, p->words)) {
            kept = SPIN_KEPT_FOR_OTHER_WORDS;
            continue;
        }
        t->wait_words = p->wait_words;
        t->wait_counted = false;
        __builtin_memcpy(t->wait_word, p->word, p->wait_words * sizeof *p->word);
        return SPIN_KEPT_HOLDS;
    }
    return kept;
}
