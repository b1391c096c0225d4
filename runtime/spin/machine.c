/* SPDX-License-Identifier: MIT
 *
 * The machine: registers, flags, memory as the thread sees it, and a buffer of its stores.
 *
 * Stores to the thread's own stack are buffered. A store elsewhere may write the value already
 * there, such as a failing test-and-set; it changes nothing while the word stays the same. Any
 * other store elsewhere is progress that others can see, so the thread does not wait, unless the
 * iteration undoes the store. So most code that does not wait is recognised after a few
 * instructions.
 */
#include "spin/internal.h"

void spin_stop(struct spin *s, enum spin_verdict verdict, enum spin_reason reason)
{
    if (s->stop)
        return;
    s->stop = true;
    s->result->verdict = (uint8_t)verdict;
    s->result->reason = (uint8_t)reason;
}

void spin_state_copy(struct state *to, const struct state *from)
{
    __builtin_memcpy(to->r, from->r, sizeof to->r);
    to->rip = from->rip;
    to->flags = from->flags;
    to->cf_taint = from->cf_taint;
    to->flags_taint = from->flags_taint;
    to->stores = from->stores;
    to->transient = from->transient;
    __builtin_memcpy(to->low, from->low, sizeof to->low);
    __builtin_memcpy(to->high, from->high, sizeof to->high);
    __builtin_memcpy(to->xmm_taint, from->xmm_taint, sizeof to->xmm_taint);
    to->xmm_written = from->xmm_written;
    for (uint32_t left = from->xmm_written; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        to->xmm[i][0] = from->xmm[i][0];
        to->xmm[i][1] = from->xmm[i][1];
    }
    for (unsigned i = 0; i < from->stores; i++)
        to->store[i] = from->store[i];
}

void spin_state_restore(struct spin *s, const struct state *from)
{
    for (uint32_t left = s->now.xmm_written & ~from->xmm_written; left; left &= left - 1)
        spin_xmm_begin(s, (unsigned)__builtin_ctz(left));
    spin_state_copy(&s->now, from);
}

bool spin_on_stack(const struct spin *s, uint64_t address)
{
    return address - s->stack_lo < s->stack_hi - s->stack_lo;
}

static struct value seen(struct spin *s, uint64_t v, uint8_t t)
{
    if (t & T_DEAD)
        s->rec.failed = true;
    return (struct value){v, t};
}

/* --- registers -------------------------------------------------------------------------------- */

static void note_input(struct spin *s, uint32_t bits) { s->inputs |= bits & ~s->written; }

struct value spin_reg_get(struct spin *s, unsigned reg, unsigned size)
{
    note_input(s, 1u << reg);
    uint8_t t = s->now.low[reg];
    if (size > 1)
        t |= s->now.high[reg];
    return seen(s, low_bytes(s->now.r[reg], size), t);
}

struct value spin_reg_get_high(struct spin *s, unsigned reg)
{
    note_input(s, 1u << reg);
    return seen(s, s->now.r[reg] >> 8 & 0xff, s->now.high[reg]);
}

void spin_reg_put(struct spin *s, unsigned reg, unsigned size, struct value v)
{
    uint64_t *r = &s->now.r[reg];
    switch (size) {
    case 1:
        *r = (*r & ~0xffull) | (v.v & 0xff);
        s->now.low[reg] = v.t;
        break;
    case 2:
        *r = (*r & ~0xffffull) | (v.v & 0xffff);
        s->now.low[reg] = v.t;
        s->now.high[reg] |= v.t;
        break;
    default:
        *r = low_bytes(v.v, size);
        s->now.low[reg] = s->now.high[reg] = v.t;
        s->written |= 1u << reg;
    }
}

void spin_reg_put_high(struct spin *s, unsigned reg, struct value v)
{
    s->now.r[reg] = (s->now.r[reg] & ~0xff00ull) | (v.v & 0xff) << 8;
    s->now.high[reg] |= v.t;
}

void spin_xmm_begin(struct spin *s, unsigned reg)
{
    uint64_t *x = s->now.xmm[reg];
    /* Each unknown register has a value of its own, so that moves between them are seen. */
    x[0] = x[1] = 0xfeed0000ull + reg;
    s->now.xmm_taint[reg] = s->xmm_first ? 0 : T_VECTOR;
    if (s->xmm_first)
        __builtin_memcpy(x, s->xmm_first + 16 * reg, 16);
}

void spin_xmm_put(struct spin *s, unsigned reg, uint64_t lo, uint64_t hi, uint8_t taint)
{
    s->now.xmm[reg][0] = lo;
    s->now.xmm[reg][1] = hi;
    s->now.xmm_taint[reg] = taint;
    s->now.xmm_written |= (uint16_t)(1u << reg);
}

bool spin_known(struct spin *s, struct value v)
{
    if (!(v.t & T_OPAQUE))
        return true;
    spin_stop(s, SPIN_UNKNOWN, v.t & T_TIME ? SPIN_R_TIME : SPIN_R_OPAQUE);
    return false;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool outside_get(struct spin *s, uint64_t address, unsigned size, uint64_t *v)
{
    *v = 0;
    if (address < (1ull << 47) - 16 && !s->config->load(address, v, size))
        return true;
    spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNREADABLE);
    return false;
}

static struct granule *find(struct spin *s, uint64_t address)
{
    for (unsigned i = s->now.stores; i-- > 0;)
        if (s->now.store[i].address == address)
            return &s->now.store[i];
    return NULL;
}

static bool address_good(struct spin *s, struct value address)
{
    if (!spin_known(s, address))
        return false;
    if (address.t & T_COUNTER)
        s->rec.walks = true;
    return true;
}

struct value spin_mem_get(struct spin *s, struct value address, unsigned size)
{
    if (!address_good(s, address))
        return (struct value){0};
    uint64_t a = address.v, own = 0, own_mask = 0, v;
    uint8_t t = 0;
    bool stale = false;
    if (s->now.stores && ((s->now.transient && a < 1ull << 47) || spin_on_stack(s, a))) {
        for (uint64_t g = a & ~3ull; g < a + size; g += 4) {
            const struct granule *w = find(s, g);
            if (!w)
                continue;
            for (unsigned i = 0; i < 4; i++) {
                uint64_t at = g + i - a;
                if (at < size && (w->mask >> i & 1)) {
                    own |= (uint64_t)(w->value >> 8 * i & 0xff) << 8 * at;
                    own_mask |= 0xffull << 8 * at;
                }
            }
            t |= w->taint;
            stale |= !w->fresh;
        }
    }
    uint64_t all = low_bytes(~0ull, size);
    if (own_mask == all) {
        /* Stored before the recorded iteration. If the store has reached memory, others may write
         * there too. */
        if (s->rec.on && stale && a < (1ull << 47) - 16) {
            v = 0;
            if (!s->config->load(a, &v, size) && v == own) {
                spin_note_load(s, a, size, v);
                t |= T_LOAD;
            }
        }
        return seen(s, own, t);
    }
    if (!outside_get(s, a, size, &v))
        return (struct value){0};
    if (a >= s->config->clock_lo && a < s->config->clock_hi) {
        t |= T_CLOCK;
        s->asked_time = true;
    } else {
        spin_note_load(s, a, size, v);
        if (s->rec.on)
            t |= T_LOAD | (address.t & T_LOAD ? T_TABLE : 0);
    }
    return seen(s, (v & ~own_mask) | own, t);
}

static void buffer(struct spin *s, uint64_t a, unsigned size, struct value v)
{
    for (uint64_t g = a & ~3ull; g < a + size; g += 4) {
        struct granule *w = find(s, g);
        if (!w) {
            if (s->now.stores == STORES) {
                spin_stop(s, SPIN_UNKNOWN, SPIN_R_STORES);
                return;
            }
            w = &s->now.store[s->now.stores++];
            *w = (struct granule){.address = g};
        }
        uint8_t mask = 0;
        for (unsigned i = 0; i < 4; i++) {
            uint64_t at = g + i - a;
            if (at >= size)
                continue;
            mask |= (uint8_t)(1u << i);
            w->value = (w->value & ~(0xffu << 8 * i)) | (uint32_t)(v.v >> 8 * at & 0xff) << 8 * i;
        }
        w->taint = (w->mask & ~mask) ? w->taint | v.t : v.t;
        w->mask |= mask;
        w->fresh = true;
    }
}

/* Note a restartable sequence. It begins with the store of a pointer to its descriptor, struct
 * rseq_cs. The kernel restarts a thread only between the addresses in the descriptor, and clears
 * the pointer if it finds the thread elsewhere. So no site is made from the storing instruction
 * on. */
static void note_critical(struct spin *s, uint64_t descriptor)
{
    enum { VERSION_AND_FLAGS, START, BYTES, ABORT, WORDS };
    enum { FLAGS = 8, BYTES_MOST = 65536, STORE_BEFORE = 64, INSTRUCTION_MOST = 15 };
    uint64_t d[WORDS], after_store = s->now.rip;
    uint8_t code;
    if (!descriptor || descriptor % sizeof d)
        return;
    for (unsigned i = 0; i < WORDS; i++)
        if (s->config->load(descriptor + i * sizeof *d, &d[i], sizeof *d))
            return;
    if ((uint32_t)d[VERSION_AND_FLAGS] || d[VERSION_AND_FLAGS] >> 32 >= FLAGS || !d[BYTES] ||
        d[BYTES] > BYTES_MOST || d[ABORT] - d[START] < d[BYTES] ||
        s->config->load(d[ABORT], &code, sizeof code))
        return;
    s->critical = d[START] - after_store < STORE_BEFORE ? after_store - INSTRUCTION_MOST : d[START];
    s->critical_bytes = d[START] + d[BYTES] - s->critical;
}

void spin_mem_put(struct spin *s, struct value address, unsigned size, struct value v, bool locked)
{
    if (s->stop || !address_good(s, address))
        return;
    if (s->config->find_pauses && size == 8 && !(v.t & T_OPAQUE))
        note_critical(s, v.v);
    if (spin_on_stack(s, address.v)) {
        buffer(s, address.v, size, v);
        return;
    }
    if (s->only_pauses) {
        s->now.transient = true; /* so that later loads see the store */
        buffer(s, address.v, size, v);
        return;
    }
    uint64_t old;
    if (!outside_get(s, address.v, size, &old))
        return;
    bool differs = (v.t & T_OPAQUE) || old != low_bytes(v.v, size);
    if (differs || s->now.transient) {
        /* The iteration may undo it; the proof checks that (spin_restored). */
        uint8_t not_back = T_OPAQUE | T_CLOCK | (s->config->alone ? 0 : T_COUNTER);
        if (locked || (v.t & not_back) || s->outside_stores++ == OUTSIDE_STORES)
            spin_stop(s, SPIN_NO_WAIT, locked ? SPIN_R_LOCKED : SPIN_R_STORE);
        s->now.transient = true;
        buffer(s, address.v, size, v);
        return;
    }
    s->rewrites += !locked;
    /* Others see the repeated store if they change the word in between: it is an input. */
    spin_note_load(s, address.v, size, old);
    if (s->rec.on && (v.t & T_COUNTER))
        s->rec.walks = true;
}

/* --- operands --------------------------------------------------------------------------------- */

struct value spin_address_of(struct spin *s, const struct op *op)
{
    struct value a = {(uint64_t)op->disp, 0};
    if (op->base != NO_REGISTER) {
        struct value b = spin_reg_get(s, op->base, 8);
        a.v += b.v;
        a.t |= b.t;
    }
    if (op->index != NO_REGISTER) {
        struct value i = spin_reg_get(s, op->index, 8);
        a.v += i.v * op->scale;
        a.t |= i.t;
    }
    if (op->address32)
        a.v &= 0xffffffff;
    if (op->segment)
        a.v += op->segment == 1 ? s->fs_base : s->gs_base;
    return a;
}

struct value spin_operand_get(struct spin *s, const struct op *op, unsigned i)
{
    const struct operand *o = &op->o[i];
    switch (o->kind) {
    case O_REG: return spin_reg_get(s, o->reg, o->size);
    case O_HIGH: return spin_reg_get_high(s, o->reg);
    case O_IMM: return (struct value){op->imm, 0};
    case O_MEM:
        if (o->size >= 1 && o->size <= 8)
            return spin_mem_get(s, spin_address_of(s, op), o->size);
        /* fall through */
    default: spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNSUPPORTED); return (struct value){0};
    }
}

void spin_operand_put(struct spin *s, const struct op *op, unsigned i, struct value v)
{
    const struct operand *o = &op->o[i];
    if (s->stop)
        return;
    switch (o->kind) {
    case O_REG: spin_reg_put(s, o->reg, o->size, v); break;
    case O_HIGH: spin_reg_put_high(s, o->reg, v); break;
    case O_MEM:
        if (o->size >= 1 && o->size <= 8) {
            spin_mem_put(s, spin_address_of(s, op), o->size, v,
                         op->lock || op->mnemonic == ZYDIS_MNEMONIC_XCHG);
            break;
        }
        /* fall through */
    default: spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNSUPPORTED);
    }
}

/* --- flags ------------------------------------------------------------------------------------ */

static uint32_t flag_bits(uint32_t which)
{
    return (which & F_CF ? SPIN_INPUT_CARRY : 0) | (which & F_OTHERS ? SPIN_INPUT_FLAGS : 0);
}

void spin_flags_read(struct spin *s, uint32_t which) { note_input(s, flag_bits(which)); }

void spin_flags_put(struct spin *s, uint32_t which, uint32_t flags, uint8_t taint)
{
    bool all_others = (which & F_OTHERS) == F_OTHERS;
    s->written |= flag_bits(all_others ? which : which & F_CF);
    s->now.flags = (s->now.flags & ~which) | (flags & which);
    if (which & F_CF)
        s->now.cf_taint = taint;
    if (which & ~(uint32_t)F_CF)
        s->now.flags_taint = taint;
}

uint64_t spin_alu(enum alu op, uint64_t l, uint64_t r, unsigned carry, unsigned size,
                  uint32_t *flags)
{
    unsigned top = 8 * size - 1;
    uint64_t v;
    uint32_t f = 0;
    l = low_bytes(l, size);
    r = low_bytes(r, size);
    switch (op) {
    case ALU_ADD:
        v = low_bytes(l + r + carry, size);
        f |= carry ? (v <= l ? F_CF : 0) : (v < l ? F_CF : 0);
        f |= (~(l ^ r) & (l ^ v)) >> top & 1 ? F_OF : 0;
        break;
    case ALU_SUB:
        v = low_bytes(l - r - carry, size);
        f |= l < r || (carry && l == r) ? F_CF : 0;
        f |= ((l ^ r) & (l ^ v)) >> top & 1 ? F_OF : 0;
        break;
    default: v = l & r;
    }
    f |= v ? 0 : F_ZF;
    f |= v >> top & 1 ? F_SF : 0;
    f |= __builtin_parity((unsigned)v & 0xff) ? 0 : F_PF;
    *flags = f;
    return v;
}

bool spin_condition_holds(unsigned condition, uint32_t f)
{
    bool cf = f & F_CF, zf = f & F_ZF, sf = f & F_SF, of = f & F_OF, holds;
    switch (condition >> 1) {
    case 0: holds = of; break;
    case 1: holds = cf; break;
    case 2: holds = zf; break;
    case 3: holds = cf || zf; break;
    case 4: holds = sf; break;
    case 5: holds = f & F_PF; break;
    case 6: holds = sf != of; break;
    default: holds = zf || sf != of;
    }
    return holds != (condition & 1);
}
