/* SPDX-License-Identifier: MIT
 *
 * Execute moves between and within vector registers for spin_execute. Compilers use them for small
 * structures. Vector arithmetic is not supported: it is work.
 */
#include "spin/internal.h"

static void unsupported(struct spin *s) { spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNSUPPORTED); }

/* Move 4, 8 or 16 bytes (`size`). The other bytes of a destination register become zero. */
static void move(struct spin *s, const struct op *op, unsigned size)
{
    const struct operand *to = &op->o[0], *from = &op->o[1];
    uint64_t lo = 0, hi = 0;
    uint8_t t = 0;
    struct value v, a;
    if (from->kind == O_XMM) {
        lo = s->now.xmm[from->reg][0];
        hi = s->now.xmm[from->reg][1];
        t = s->now.xmm_taint[from->reg];
    } else if (from->kind == O_REG) {
        v = spin_reg_get(s, from->reg, from->size);
        lo = v.v;
        t = v.t;
    } else if (from->kind == O_MEM) {
        a = spin_address_of(s, op);
        v = spin_mem_get(s, a, size < 8 ? size : 8);
        lo = v.v;
        t = v.t;
        if (size == 16) {
            a.v += 8;
            v = spin_mem_get(s, a, 8);
            hi = v.v;
            t |= v.t;
        }
    } else {
        unsupported(s);
    }
    if (s->stop)
        return;
    if (size < 16)
        hi = 0;
    lo = low_bytes(lo, size < 8 ? size : 8);
    if (t & T_DEAD)
        s->rec.failed = true;
    if (to->kind == O_XMM) {
        spin_xmm_put(s, to->reg, lo, hi, t);
    } else if (to->kind == O_REG) {
        spin_reg_put(s, to->reg, to->size, (struct value){lo, t});
    } else if (to->kind == O_MEM) {
        a = spin_address_of(s, op);
        spin_mem_put(s, a, size < 8 ? size : 8, (struct value){lo, t}, false);
        a.v += 8;
        if (size == 16)
            spin_mem_put(s, a, 8, (struct value){hi, t}, false);
    } else {
        unsupported(s);
    }
}

static void clear(struct spin *s, const struct op *op)
{
    unsigned last = op->operands - 1u;
    if (op->o[0].kind != O_XMM || op->o[last].kind != O_XMM || op->o[last - 1].kind != O_XMM ||
        op->o[last].reg != op->o[last - 1].reg) {
        unsupported(s);
        return;
    }
    spin_xmm_put(s, op->o[0].reg, 0, 0, 0);
}

/* Two halves of a vector register or of 16 bytes of memory; for 8 bytes, both are the same. */
struct halves {
    uint64_t h[2];
    uint8_t t;
};

static struct halves halves_of(struct spin *s, const struct op *op, unsigned i)
{
    const struct operand *o = &op->o[i];
    if (o->kind == O_XMM)
        return (struct halves){{s->now.xmm[o->reg][0], s->now.xmm[o->reg][1]},
                               s->now.xmm_taint[o->reg]};
    if (o->kind == O_MEM) {
        struct value a = spin_address_of(s, op), lo = spin_mem_get(s, a, 8), hi = lo;
        a.v += 8;
        if (o->size == 16)
            hi = spin_mem_get(s, a, 8);
        return (struct halves){{lo.v, hi.v}, lo.t | hi.t};
    }
    unsupported(s);
    return (struct halves){{0}, 0};
}

static void store_half(struct spin *s, const struct op *op, unsigned half)
{
    struct halves from = halves_of(s, op, 1);
    spin_mem_put(s, spin_address_of(s, op), 8, (struct value){from.h[half], from.t}, false);
}

/* Combine halves of the last two operands. `lo` and `hi` select a half each: 0 and 1 are in the
 * former operand, which is a register, 2 and 3 in the last one. */
static void combine(struct spin *s, const struct op *op, unsigned lo, unsigned hi)
{
    unsigned last = op->operands - 1u;
    if (op->operands < 2 || op->o[0].kind != O_XMM || op->o[last - 1].kind != O_XMM) {
        unsupported(s);
        return;
    }
    struct halves a = halves_of(s, op, last - 1), b = halves_of(s, op, last);
    if (s->stop)
        return;
    uint64_t all[4] = {a.h[0], a.h[1], b.h[0], b.h[1]};
    uint8_t t = a.t | b.t;
    if (t & T_DEAD)
        s->rec.failed = true;
    spin_xmm_put(s, op->o[0].reg, all[lo], all[hi], t);
}

/* Move a scalar from or to memory. Between registers the upper half stays. */
static void scalar(struct spin *s, const struct op *op, unsigned size)
{
    if (op->operands == 2 && (op->o[0].kind == O_MEM || op->o[1].kind == O_MEM))
        move(s, op, size);
    else if (size == 8)
        combine(s, op, 2, 1);
    else
        unsupported(s);
}

bool spin_vector(struct spin *s, const struct op *op, unsigned mnemonic)
{
    bool to_memory = op->o[0].kind == O_MEM;
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_VMOVD: move(s, op, 4); break;
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_VMOVQ: move(s, op, 8); break;
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVUPS: move(s, op, 16); break;
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VXORPS: clear(s, op); break;
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_VUNPCKLPD:
    case ZYDIS_MNEMONIC_MOVLHPS:
    case ZYDIS_MNEMONIC_VMOVLHPS: combine(s, op, 0, 2); break;
    case ZYDIS_MNEMONIC_PUNPCKHQDQ:
    case ZYDIS_MNEMONIC_VPUNPCKHQDQ:
    case ZYDIS_MNEMONIC_UNPCKHPD:
    case ZYDIS_MNEMONIC_VUNPCKHPD: combine(s, op, 1, 3); break;
    case ZYDIS_MNEMONIC_MOVHLPS:
    case ZYDIS_MNEMONIC_VMOVHLPS: combine(s, op, 3, 1); break;
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
    case ZYDIS_MNEMONIC_VMOVHPS:
    case ZYDIS_MNEMONIC_VMOVHPD:
        if (to_memory)
            store_half(s, op, 1);
        else
            combine(s, op, 0, 2);
        break;
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
    case ZYDIS_MNEMONIC_VMOVLPS:
    case ZYDIS_MNEMONIC_VMOVLPD:
        if (to_memory)
            store_half(s, op, 0);
        else
            combine(s, op, 2, 1);
        break;
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_VMOVSD:
        if (op->o[0].kind != O_XMM && op->o[1].kind != O_XMM)
            return false; /* string instruction */
        scalar(s, op, 8);
        break;
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_VMOVSS: scalar(s, op, 4); break;
    default: return false;
    }
    return true;
}
