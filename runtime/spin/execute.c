/* SPDX-License-Identifier: MIT
 *
 * Execute one instruction, of those that compilers emit in loops. Any other ends the
 * interpretation, which is always sound. Flags that the manuals leave undefined get some value: no
 * compiler's code reads them.
 */
#include "spin/internal.h"

#include <sys/syscall.h>

static const struct value nothing = {0, 0};

static void unsupported(struct spin *s) { spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNSUPPORTED); }

/* Load two operands to compute with. Returns false if the interpretation has stopped. */
static bool two(struct spin *s, const struct op *op, struct value *l, struct value *r)
{
    *l = spin_operand_get(s, op, 0);
    *r = spin_operand_get(s, op, 1);
    return !s->stop && spin_known(s, *l) && spin_known(s, *r);
}

/* Compute, and set the flags so that they can be recomputed with other operands: add, sub, cmp,
 * and, test, inc, dec, neg, adc, sbb, xadd. */
static struct value arithmetic(struct spin *s, enum alu what, struct value l, struct value r,
                               unsigned carry, uint8_t carry_taint, unsigned size, uint32_t which)
{
    uint32_t flags;
    struct value v = {spin_alu(what, l.v, r.v, carry, size, &flags), l.t | r.t | carry_taint};
    spin_flags_put(s, which, flags, v.t);
    s->source = (struct flag_source){carry ? ALU_NONE : what, (uint8_t)size, l.v, r.v};
    return v;
}

static void binary(struct spin *s, const struct op *op, enum alu what, bool keep, bool with_carry)
{
    struct value l, r;
    if (!two(s, op, &l, &r))
        return;
    uint8_t t = 0;
    unsigned carry = 0;
    if (with_carry) {
        struct value c = {s->now.flags & F_CF, s->now.cf_taint};
        spin_flags_read(s, F_CF);
        if (!spin_known(s, c))
            return;
        if (c.t & T_DEAD)
            s->rec.failed = true;
        carry = (unsigned)c.v;
        t = c.t;
        /* sbb eax,eax: the result depends on the carry only. */
        if (what == ALU_SUB && op->o[1].kind == O_REG && op->o[0].kind == O_REG &&
            op->o[0].reg == op->o[1].reg)
            l.t = r.t = 0;
    }
    if (what == ALU_SUB && !with_carry && op->o[1].kind == O_REG && op->o[0].kind == O_REG &&
        op->o[0].reg == op->o[1].reg)
        l.t = r.t = 0;
    struct value v = arithmetic(s, what, l, r, carry, t, op->o[0].size, F_ALL);
    if (keep)
        spin_operand_put(s, op, 0, v);
}

static void or_xor(struct spin *s, const struct op *op, bool exclusive)
{
    struct value l, r;
    if (exclusive && op->o[1].kind == O_REG && op->o[0].kind == O_REG &&
        op->o[0].reg == op->o[1].reg) {
        spin_flags_put(s, F_ALL, F_ZF | F_PF, 0); /* `xor eax,eax` reads nothing */
        s->source.alu = ALU_NONE;
        spin_operand_put(s, op, 0, nothing);
        return;
    }
    if (!two(s, op, &l, &r))
        return;
    uint64_t v = exclusive ? l.v ^ r.v : l.v | r.v;
    v = low_bytes(v, op->o[0].size);
    struct value out = {v, l.t | r.t};
    arithmetic(s, ALU_AND, out, out, 0, 0, op->o[0].size, F_ALL);
    s->source.alu = ALU_NONE;
    spin_operand_put(s, op, 0, out);
}

static void unary(struct spin *s, const struct op *op, unsigned mnemonic)
{
    struct value v = spin_operand_get(s, op, 0), one = {1, 0};
    unsigned size = op->o[0].size;
    if (s->stop || !spin_known(s, v))
        return;
    if (mnemonic == ZYDIS_MNEMONIC_INC)
        v = arithmetic(s, ALU_ADD, v, one, 0, 0, size, F_ALL & ~(uint32_t)F_CF);
    else if (mnemonic == ZYDIS_MNEMONIC_DEC)
        v = arithmetic(s, ALU_SUB, v, one, 0, 0, size, F_ALL & ~(uint32_t)F_CF);
    else if (mnemonic == ZYDIS_MNEMONIC_NEG)
        v = arithmetic(s, ALU_SUB, nothing, v, 0, 0, size, F_ALL);
    else if (mnemonic == ZYDIS_MNEMONIC_NOT)
        v.v = low_bytes(~v.v, size);
    else
        for (uint64_t x = v.v, i = 0; i < size; i++, x >>= 8) /* bswap */
            v.v = (i ? v.v << 8 : 0) | (x & 0xff);
    spin_operand_put(s, op, 0, v);
}

static void multiply(struct spin *s, const struct op *op, unsigned mnemonic)
{
    unsigned size = op->o[0].size;
    struct value l, r;
    if (op->operands == 1) {
        if (size < 4) {
            unsupported(s);
            return;
        }
        l = spin_reg_get(s, RAX, size);
        r = spin_operand_get(s, op, 0);
    } else {
        l = spin_operand_get(s, op, op->operands - 2);
        r = spin_operand_get(s, op, op->operands - 1);
    }
    if (s->stop || !spin_known(s, l) || !spin_known(s, r))
        return;
    uint8_t t = l.t | r.t;
    unsigned __int128 p;
    bool over;
    if (mnemonic == ZYDIS_MNEMONIC_MUL) {
        p = (unsigned __int128)low_bytes(l.v, size) * low_bytes(r.v, size);
        over = p >> 8 * size;
    } else {
        __int128 q = (__int128)sign_extended(l.v, size) * sign_extended(r.v, size);
        over = q != sign_extended((uint64_t)q, size);
        p = (unsigned __int128)q;
    }
    spin_flags_put(s, F_ALL, over ? F_CF | F_OF : 0, t);
    s->source.alu = ALU_NONE;
    if (op->operands == 1) {
        spin_reg_put(s, RAX, size, (struct value){(uint64_t)p, t});
        spin_reg_put(s, RDX, size, (struct value){(uint64_t)(p >> 8 * size), t});
    } else {
        spin_operand_put(s, op, 0, (struct value){(uint64_t)p, t});
    }
}

static void divide(struct spin *s, const struct op *op, bool with_sign)
{
    unsigned size = op->o[0].size;
    struct value d = spin_operand_get(s, op, 0), lo = spin_reg_get(s, RAX, size),
                 hi = spin_reg_get(s, RDX, size);
    if (size < 4) {
        unsupported(s);
        return;
    }
    if (s->stop || !spin_known(s, d) || !spin_known(s, lo) || !spin_known(s, hi))
        return;
    uint64_t q, r, h = hi.v, l = lo.v, by = low_bytes(d.v, size);
    bool negative = false, negative_by = false;
    if (with_sign) {
        /* Divide magnitudes. */
        negative = sign_extended(h, size) < 0;
        negative_by = sign_extended(by, size) < 0;
        if (negative) {
            l = low_bytes(-l, size);
            h = low_bytes(~h + !l, size);
        }
        if (negative_by)
            by = low_bytes(-by, size);
    }
    if (h >= by) {
        spin_stop(s, SPIN_UNKNOWN, SPIN_R_FAULT);
        return;
    }
    if (size == 8) {
        __asm__("divq %4" : "=a"(q), "=d"(r) : "0"(l), "1"(h), "r"(by) : "cc");
    } else {
        uint64_t n = h << 32 | l;
        q = n / by;
        r = n % by;
    }
    if (with_sign) {
        uint64_t limit = 1ull << (8 * size - 1);
        if (q > limit || (q == limit && negative == negative_by)) {
            spin_stop(s, SPIN_UNKNOWN, SPIN_R_FAULT);
            return;
        }
        q = negative != negative_by ? -q : q;
        r = negative ? -r : r;
    }
    uint8_t t = d.t | lo.t | hi.t;
    spin_flags_put(s, F_ALL, 0, t);
    s->source.alu = ALU_NONE;
    spin_reg_put(s, RAX, size, (struct value){q, t});
    spin_reg_put(s, RDX, size, (struct value){r, t});
}

static void exchange(struct spin *s, const struct op *op, bool add)
{
    struct value l = spin_operand_get(s, op, 0), r = spin_operand_get(s, op, 1), v = r;
    if (s->stop)
        return;
    if (add) {
        if (!spin_known(s, l) || !spin_known(s, r))
            return;
        v = arithmetic(s, ALU_ADD, l, r, 0, 0, op->o[0].size, F_ALL);
        if (op->o[0].kind == O_REG) {
            spin_operand_put(s, op, 1, l);
            spin_operand_put(s, op, 0, v);
            return;
        }
    }
    /* Store to memory first: its address may depend on the register. */
    if (op->o[0].kind == O_MEM || op->o[1].kind != O_MEM) {
        spin_operand_put(s, op, 0, v);
        spin_operand_put(s, op, 1, l);
    } else {
        spin_operand_put(s, op, 1, l);
        spin_operand_put(s, op, 0, v);
    }
}

static void compare_exchange(struct spin *s, const struct op *op)
{
    unsigned size = op->o[0].size;
    struct value old = spin_operand_get(s, op, 0), expected = spin_reg_get(s, RAX, size),
                 v = spin_operand_get(s, op, 1);
    if (s->stop || !spin_known(s, old) || !spin_known(s, expected))
        return;
    arithmetic(s, ALU_SUB, expected, old, 0, 0, size, F_ALL);
    if (low_bytes(expected.v, size) == old.v)
        spin_operand_put(s, op, 0, v);
    else
        spin_reg_put(s, RAX, size, old);
}

static void push(struct spin *s, unsigned size, struct value v)
{
    struct value rsp = spin_reg_get(s, RSP, 8);
    rsp.v -= size;
    spin_mem_put(s, rsp, size, v, false);
    spin_reg_put(s, RSP, 8, rsp);
}

static struct value pop(struct spin *s, unsigned size, uint64_t more)
{
    struct value rsp = spin_reg_get(s, RSP, 8), v = spin_mem_get(s, rsp, size);
    rsp.v += size + more;
    spin_reg_put(s, RSP, 8, rsp);
    return v;
}

/* Jump, or call if `link`. Pre: s->now.rip is the next instruction. */
static void jump(struct spin *s, const struct op *op, bool link)
{
    struct value to = spin_operand_get(s, op, 0);
    if (s->stop || !spin_known(s, to))
        return;
    if (op->o[0].kind != O_IMM && op->o[0].size != 8) {
        unsupported(s);
        return;
    }
    /* A jump table indexed by a loaded value decides like a branch; an object's method does not. */
    if (s->rec.on && !link && (to.t & T_TABLE) && !(to.t & T_COUNTER))
        s->rec.table = true;
    if (to.t & T_COUNTER)
        s->rec.failed = true;
    if (link)
        push(s, 8, (struct value){s->now.rip, 0});
    s->now.rip = to.v;
    if (!link && to.v <= op->address)
        spin_at_head(s, op->address);
}

static uint8_t condition_taint(struct spin *s, unsigned condition)
{
    unsigned pair = condition >> 1;
    spin_flags_read(s, pair == 1 ? F_CF : pair == 3 ? F_ALL : F_OTHERS);
    uint8_t t = pair == 1   ? s->now.cf_taint
                : pair == 3 ? s->now.cf_taint | s->now.flags_taint
                            : s->now.flags_taint;
    if (t & T_DEAD)
        s->rec.failed = true;
    spin_known(s, (struct value){0, t});
    return t;
}

static void sign_extend_rax(struct spin *s, unsigned from, unsigned to)
{
    struct value v = spin_reg_get(s, RAX, from);
    if (spin_known(s, v))
        spin_reg_put(s, RAX, to, (struct value){(uint64_t)sign_extended(v.v, from), v.t});
}

static void sign_into_rdx(struct spin *s, unsigned size)
{
    struct value v = spin_reg_get(s, RAX, size);
    if (spin_known(s, v))
        spin_reg_put(s, RDX, size, (struct value){(uint64_t)(sign_extended(v.v, size) >> 63), v.t});
}

static void conditional(struct spin *s, const struct op *op)
{
    uint8_t t = condition_taint(s, op->condition);
    bool holds = spin_condition_holds(op->condition, s->now.flags);
    struct value v, old;
    if (s->stop)
        return;
    switch (op->kind) {
    case OP_JCC:
        if (spin_at_branch(s, op, holds, t)) {
            s->now.rip = op->imm;
            if (op->imm <= op->address)
                spin_at_head(s, op->address);
        }
        break;
    case OP_SETCC: spin_operand_put(s, op, 0, (struct value){holds, t}); break;
    default:
        old = spin_operand_get(s, op, 0);
        v = spin_operand_get(s, op, 1);
        if (!spin_known(s, v) || !spin_known(s, old))
            return;
        spin_operand_put(s, op, 0, (struct value){holds ? v.v : old.v, v.t | old.t | t});
    }
}

/* Returns whether op is a fence such as `lock or $0, (%rsp)`, which leaves memory unchanged. */
static bool is_fence(const struct op *op)
{
    return op->lock && op->o[0].kind == O_MEM && op->o[1].kind == O_IMM && !op->imm &&
           (op->mnemonic == ZYDIS_MNEMONIC_OR || op->mnemonic == ZYDIS_MNEMONIC_ADD);
}

/* Execute sched_yield(2) if allowed: it changes nothing that the program sees. */
static bool yields(struct spin *s)
{
    if (!s->config->yields || s->now.low[RAX] || s->now.high[RAX] ||
        spin_reg_get(s, RAX, 8).v != SYS_sched_yield)
        return false;
    spin_flags_read(s, F_ALL);
    spin_reg_put(s, RAX, 8, nothing);
    spin_reg_put(s, RCX, 8, (struct value){s->now.rip, 0});
    spin_reg_put(s, R11, 8, (struct value){s->now.flags, s->now.flags_taint | s->now.cf_taint});
    return true;
}

void spin_execute(struct spin *s, const struct op *op)
{
    unsigned m = op->mnemonic;
    struct value v;
    s->now.rip = op->address + op->length;
    if (op->kind == OP_REPEATED) {
        unsupported(s);
        return;
    }
    if (op->kind != OP_OTHER) {
        conditional(s, op);
        return;
    }
    if (is_fence(op)) {
        spin_flags_put(s, F_ALL, 0, T_VECTOR); /* no code reads them */
        return;
    }
    switch (m) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE: break;
    case ZYDIS_MNEMONIC_PAUSE:
        s->pauses++;
        s->rec.pauses++;
        if (s->only_pauses && !s->hint && !spin_in_critical(s, op->address))
            s->hint = op->address;
        /* prefer a `pause` in the loop's own function */
        if ((!s->rec.pause || s->now.r[RSP] >= s->rec.outermost) &&
            spin_may_be_site(s, op->address))
            s->rec.pause = op->address;
        break;
    case ZYDIS_MNEMONIC_MOV: spin_operand_put(s, op, 0, spin_operand_get(s, op, 1)); break;
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        v = spin_operand_get(s, op, 1);
        if (s->stop || !spin_known(s, v))
            break;
        v.v = m == ZYDIS_MNEMONIC_MOVZX ? v.v : (uint64_t)sign_extended(v.v, op->o[1].size);
        spin_operand_put(s, op, 0, v);
        break;
    case ZYDIS_MNEMONIC_LEA:
        v = spin_address_of(s, op);
        if (spin_known(s, v))
            spin_operand_put(s, op, 0, v);
        break;
    case ZYDIS_MNEMONIC_ADD: binary(s, op, ALU_ADD, true, false); break;
    case ZYDIS_MNEMONIC_SUB: binary(s, op, ALU_SUB, true, false); break;
    case ZYDIS_MNEMONIC_ADC: binary(s, op, ALU_ADD, true, true); break;
    case ZYDIS_MNEMONIC_SBB: binary(s, op, ALU_SUB, true, true); break;
    case ZYDIS_MNEMONIC_CMP: binary(s, op, ALU_SUB, false, false); break;
    case ZYDIS_MNEMONIC_AND: binary(s, op, ALU_AND, true, false); break;
    case ZYDIS_MNEMONIC_TEST: binary(s, op, ALU_AND, false, false); break;
    case ZYDIS_MNEMONIC_OR: or_xor(s, op, false); break;
    case ZYDIS_MNEMONIC_XOR: or_xor(s, op, true); break;
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_BSWAP: unary(s, op, m); break;
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR: spin_shift(s, op, m); break;
    case ZYDIS_MNEMONIC_SHLX:
    case ZYDIS_MNEMONIC_SHRX:
    case ZYDIS_MNEMONIC_SARX:
    case ZYDIS_MNEMONIC_RORX: spin_shift_x(s, op, m); break;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC: spin_bit(s, op, m); break;
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_POPCNT: spin_count_bits(s, op, m); break;
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL: multiply(s, op, m); break;
    case ZYDIS_MNEMONIC_DIV: divide(s, op, false); break;
    case ZYDIS_MNEMONIC_IDIV: divide(s, op, true); break;
    case ZYDIS_MNEMONIC_XCHG: exchange(s, op, false); break;
    case ZYDIS_MNEMONIC_XADD: exchange(s, op, true); break;
    case ZYDIS_MNEMONIC_CMPXCHG: compare_exchange(s, op); break;
    case ZYDIS_MNEMONIC_PUSH:
        v = spin_operand_get(s, op, 0);
        push(s, op->o[0].size == 2 ? 2 : 8, v);
        break;
    case ZYDIS_MNEMONIC_POP:
        v = pop(s, op->o[0].size, 0);
        spin_operand_put(s, op, 0, v);
        break;
    case ZYDIS_MNEMONIC_LEAVE:
        spin_reg_put(s, RSP, 8, spin_reg_get(s, RBP, 8));
        v = pop(s, 8, 0);
        spin_reg_put(s, RBP, 8, v);
        break;
    case ZYDIS_MNEMONIC_JMP: jump(s, op, false); break;
    case ZYDIS_MNEMONIC_CALL: jump(s, op, true); break;
    case ZYDIS_MNEMONIC_RET:
        v = pop(s, 8, op->operands ? op->imm : 0);
        if (!s->stop && spin_known(s, v))
            s->now.rip = v.v;
        break;
    case ZYDIS_MNEMONIC_CBW: sign_extend_rax(s, 1, 2); break;
    case ZYDIS_MNEMONIC_CWDE: sign_extend_rax(s, 2, 4); break;
    case ZYDIS_MNEMONIC_CDQE: sign_extend_rax(s, 4, 8); break;
    case ZYDIS_MNEMONIC_CWD: sign_into_rdx(s, 2); break;
    case ZYDIS_MNEMONIC_CDQ: sign_into_rdx(s, 4); break;
    case ZYDIS_MNEMONIC_CQO: sign_into_rdx(s, 8); break;
    case ZYDIS_MNEMONIC_RDTSCP:
        spin_reg_put(s, RCX, 4, (struct value){0, T_TIME}); /* fall through */
    case ZYDIS_MNEMONIC_RDTSC: {
        s->asked_time = true;
        uint8_t t = s->config->time ? T_CLOCK : T_TIME;
        spin_reg_put(s, RAX, 4, (struct value){s->config->time, t});
        spin_reg_put(s, RDX, 4, (struct value){s->config->time >> 32, t});
        break;
    }
    case ZYDIS_MNEMONIC_SYSCALL:
        if (yields(s))
            break; /* fall through */
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_INT: spin_stop(s, SPIN_NO_WAIT, SPIN_R_SYSCALL); break;
    default:
        if (!spin_vector(s, op, m))
            unsupported(s);
    }
}
