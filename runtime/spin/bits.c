/* SPDX-License-Identifier: MIT
 *
 * Execute bit instructions for spin_execute: shifts, rotates, bit tests, bit counts.
 */
#include "spin/internal.h"

static const struct value nothing = {0, 0};

void spin_shift(struct spin *s, const struct op *op, unsigned mnemonic)
{
    struct value v = spin_operand_get(s, op, 0), by = {1, 0};
    unsigned size = op->o[0].size, bits = 8 * size;
    if (op->operands > 1)
        by = spin_operand_get(s, op, 1);
    if (s->stop || !spin_known(s, v) || !spin_known(s, by))
        return;
    unsigned n = by.v & (size == 8 ? 63 : 31);
    uint8_t t = v.t | by.t;
    if (!n) {
        s->now.cf_taint |= t;
        s->now.flags_taint |= t;
        spin_operand_put(s, op, 0, (struct value){v.v, t});
        return;
    }
    uint64_t x = v.v, out;
    int64_t signed_x = sign_extended(x, size);
    bool carry, rotate = false;
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
        out = x << n;
        carry = n <= bits && (x >> (bits - n) & 1);
        break;
    case ZYDIS_MNEMONIC_SHR:
        out = x >> n;
        carry = x >> (n - 1) & 1;
        break;
    case ZYDIS_MNEMONIC_SAR:
        out = (uint64_t)(signed_x >> n);
        carry = signed_x >> (n - 1) & 1;
        break;
    default:
        rotate = true;
        n %= bits;
        if (mnemonic == ZYDIS_MNEMONIC_ROR)
            n = (bits - n) % bits;
        out = n ? x << n | x >> (bits - n) : x;
        out = low_bytes(out, size);
        carry = mnemonic == ZYDIS_MNEMONIC_ROL ? out & 1 : out >> (bits - 1) & 1;
    }
    out = low_bytes(out, size);
    if (rotate) {
        spin_flags_put(s, F_CF | F_OF, carry ? F_CF : 0, t | s->now.flags_taint);
        s->now.cf_taint = t;
    } else {
        uint32_t f;
        spin_alu(ALU_AND, out, out, 0, size, &f);
        bool top = out >> (bits - 1) & 1, was = x >> (bits - 1) & 1;
        f |= (carry ? F_CF : 0);
        f |= (mnemonic == ZYDIS_MNEMONIC_SHL   ? top != carry
              : mnemonic == ZYDIS_MNEMONIC_SHR ? was
                                               : 0)
                 ? F_OF
                 : 0;
        spin_flags_put(s, F_ALL, f, t);
    }
    s->source.alu = ALU_NONE;
    spin_operand_put(s, op, 0, (struct value){out, t});
}

/* shlx, sarx, shrx, rorx: no flags. */
void spin_shift_x(struct spin *s, const struct op *op, unsigned mnemonic)
{
    struct value v = spin_operand_get(s, op, 1), by = spin_operand_get(s, op, 2);
    unsigned size = op->o[0].size, bits = 8 * size;
    if (s->stop || !spin_known(s, v) || !spin_known(s, by))
        return;
    unsigned n = by.v & (bits - 1);
    uint64_t x = low_bytes(v.v, size);
    x = mnemonic == ZYDIS_MNEMONIC_SHLX   ? x << n
        : mnemonic == ZYDIS_MNEMONIC_SHRX ? x >> n
        : mnemonic == ZYDIS_MNEMONIC_SARX ? (uint64_t)(sign_extended(x, size) >> n)
        : n                               ? x >> n | x << (bits - n)
                                          : x;
    spin_operand_put(s, op, 0, (struct value){low_bytes(x, size), v.t | by.t});
}

/* bt, bts, btr, btc. In memory, an index in a register may reach beyond the operand. */
void spin_bit(struct spin *s, const struct op *op, unsigned mnemonic)
{
    unsigned size = op->o[0].size, bits = 8 * size;
    struct value at = spin_operand_get(s, op, 1), v, a = nothing;
    if (s->stop || !spin_known(s, at))
        return;
    if (op->o[0].kind == O_MEM) {
        a = spin_address_of(s, op);
        if (op->o[1].kind == O_REG) {
            a.v += (uint64_t)(sign_extended(at.v, size) >> (size == 8   ? 6
                                                            : size == 4 ? 5
                                                                        : 4)) *
                   size;
            a.t |= at.t;
        }
        v = spin_mem_get(s, a, size);
    } else {
        v = spin_operand_get(s, op, 0);
    }
    if (s->stop || !spin_known(s, v))
        return;
    uint64_t mask = 1ull << (at.v & (bits - 1));
    uint8_t t = v.t | at.t;
    spin_flags_put(s, F_CF, v.v & mask ? F_CF : 0, t);
    s->source.alu = ALU_NONE;
    uint64_t out = mnemonic == ZYDIS_MNEMONIC_BTS   ? v.v | mask
                   : mnemonic == ZYDIS_MNEMONIC_BTR ? v.v & ~mask
                                                    : v.v ^ mask;
    if (mnemonic == ZYDIS_MNEMONIC_BT)
        return;
    if (op->o[0].kind == O_MEM)
        spin_mem_put(s, a, size, (struct value){out, t}, op->lock);
    else
        spin_operand_put(s, op, 0, (struct value){out, t});
}

void spin_count_bits(struct spin *s, const struct op *op, unsigned mnemonic)
{
    struct value v = spin_operand_get(s, op, 1);
    unsigned size = op->o[0].size, bits = 8 * size;
    if (s->stop || !spin_known(s, v))
        return;
    uint64_t x = low_bytes(v.v, size), out = 0;
    uint32_t f = 0;
    if (mnemonic == ZYDIS_MNEMONIC_POPCNT) {
        for (uint64_t y = x; y; y &= y - 1)
            out++;
        f = x ? 0 : F_ZF;
    } else if (mnemonic == ZYDIS_MNEMONIC_BSF || mnemonic == ZYDIS_MNEMONIC_BSR) {
        f = x ? 0 : F_ZF;
        if (!x) { /* the destination is unchanged */
            spin_flags_put(s, F_ALL, f, v.t);
            s->source.alu = ALU_NONE;
            return;
        }
        out = mnemonic == ZYDIS_MNEMONIC_BSF ? (unsigned)__builtin_ctzll(x)
                                             : 63 - (unsigned)__builtin_clzll(x);
    } else {
        out = !x                                 ? bits
              : mnemonic == ZYDIS_MNEMONIC_TZCNT ? (unsigned)__builtin_ctzll(x)
                                                 : (unsigned)__builtin_clzll(x) - (64 - bits);
        f = (x ? 0 : F_CF) | (out ? 0 : F_ZF);
    }
    spin_flags_put(s, F_ALL, f, v.t);
    s->source.alu = ALU_NONE;
    spin_operand_put(s, op, 0, (struct value){out, v.t});
}
