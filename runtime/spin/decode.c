/* SPDX-License-Identifier: MIT
 *
 * Decode instructions with Zydis, and keep what the interpreter needs in a small direct-mapped
 * table. Entries are valid for one interpretation, or longer where code does not change.
 */
#include "spin/internal.h"

#include <Zydis/Register.h>

static unsigned fetch(struct spin *s, uint64_t address, uint8_t bytes[15])
{
    unsigned n = 15;
    if (address >= (1ull << 47) - 15)
        return 0;
    long (*load)(uintptr_t, void *, unsigned) =
        s->config->fetch ? s->config->fetch : s->config->load;
    if (!load(address, bytes, n))
        return n;
    /* The instruction may be the last one of the last mapped page. */
    n = 4096 - (address & 4095);
    return n < 15 && !load(address, bytes, n) ? n : 0;
}

static bool general(ZydisRegister r, uint8_t *number)
{
    ZydisRegisterClass class = ZydisRegisterGetClass(r);
    if (class != ZYDIS_REGCLASS_GPR64 && class != ZYDIS_REGCLASS_GPR32)
        return false;
    *number = (uint8_t)ZydisRegisterGetId(r);
    return *number < 16;
}

static bool memory(struct op *op, const ZydisDecodedOperand *z)
{
    if (z->mem.type != ZYDIS_MEMOP_TYPE_MEM && z->mem.type != ZYDIS_MEMOP_TYPE_AGEN)
        return false;
    op->disp = z->mem.disp.value;
    op->scale = z->mem.scale;
    if (z->mem.base == ZYDIS_REGISTER_RIP)
        op->disp += (int64_t)(op->address + op->length);
    else if (z->mem.base != ZYDIS_REGISTER_NONE && !general(z->mem.base, &op->base))
        return false;
    if (z->mem.index != ZYDIS_REGISTER_NONE && !general(z->mem.index, &op->index))
        return false;
    op->segment = z->mem.segment == ZYDIS_REGISTER_FS   ? 1
                  : z->mem.segment == ZYDIS_REGISTER_GS ? 2
                                                        : 0;
    return true;
}

static bool register_operand(struct operand *o, ZydisRegister r)
{
    ZydisRegisterClass class = ZydisRegisterGetClass(r);
    int id = ZydisRegisterGetId(r);
    o->kind = O_REG;
    switch (class) {
    case ZYDIS_REGCLASS_GPR8:
        /* Zydis order: AL..BL, AH..BH, SPL..DIL, R8B..R15B. */
        if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH) {
            o->kind = O_HIGH;
            o->reg = (uint8_t)(r - ZYDIS_REGISTER_AH);
        } else {
            o->reg = (uint8_t)(r < ZYDIS_REGISTER_AH ? r - ZYDIS_REGISTER_AL
                                                     : r - ZYDIS_REGISTER_SPL + 4);
        }
        return o->reg < 16;
    case ZYDIS_REGCLASS_XMM: o->kind = O_XMM; break;
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64: break;
    default: return false;
    }
    o->reg = (uint8_t)id;
    return id >= 0 && id < 16;
}

static bool translate(struct op *op, const ZydisDecodedInstruction *d, const ZydisDecodedOperand *z)
{
    op->mnemonic = (uint16_t)d->mnemonic;
    op->length = d->length;
    op->condition = d->opcode & 15;
    op->base = op->index = NO_REGISTER;
    op->address32 = d->address_width == 32;
    op->lock = d->attributes & ZYDIS_ATTRIB_HAS_LOCK;
    if (d->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
        op->kind = OP_REPEATED;
    else if (d->meta.category == ZYDIS_CATEGORY_SETCC)
        op->kind = OP_SETCC;
    else if (d->meta.category == ZYDIS_CATEGORY_CMOV &&
             d->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
        op->kind = OP_CMOV;
    else if (d->meta.category == ZYDIS_CATEGORY_COND_BR &&
             (d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? (d->opcode & 0xf0) == 0x70
                                                        : (d->opcode & 0xf0) == 0x80))
        op->kind = OP_JCC;
    if (d->operand_count_visible > 4)
        return false;
    op->operands = d->operand_count_visible;
    for (unsigned i = 0; i < op->operands; i++) {
        struct operand *o = &op->o[i];
        o->size = (uint8_t)(z[i].size / 8);
        switch (z[i].type) {
        case ZYDIS_OPERAND_TYPE_REGISTER:
            if (!register_operand(o, z[i].reg.value))
                return false;
            break;
        case ZYDIS_OPERAND_TYPE_MEMORY:
            o->kind = O_MEM;
            if (!memory(op, &z[i]))
                return false;
            break;
        case ZYDIS_OPERAND_TYPE_IMMEDIATE:
            o->kind = O_IMM;
            op->imm = z[i].imm.value.u;
            if (z[i].imm.is_relative)
                op->imm += op->address + op->length;
            break;
        default: return false;
        }
    }
    return true;
}

/* Returns whether to skip the instruction, whatever its operands are. */
static bool has_no_effect(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHW: return true;
    default: return false;
    }
}

static bool is_same(const struct spin_config *c, uint64_t address)
{
    return (address >= c->same_lo && address < c->same_hi) ||
           (c->same_hi && address >= c->libc_lo && address < c->libc_hi);
}

const struct op *spin_decode(struct spin *s, uint64_t address)
{
    struct op *op = &s->op[address % OPS];
    if (op->address == address && address && (op->run == s->run || is_same(s->config, address)))
        return op;
    uint8_t bytes[15];
    unsigned n = fetch(s, address, bytes);
    if (!n) {
        spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNREADABLE);
        return NULL;
    }
    ZydisDecoderContext context;
    ZydisDecodedInstruction d;
    ZydisDecodedOperand z[ZYDIS_MAX_OPERAND_COUNT_VISIBLE];
    *op = (struct op){.address = address, .run = s->run};
    bool good = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&s->decoder, &context, bytes, n, &d));
    if (good && has_no_effect(d.mnemonic)) {
        op->mnemonic = ZYDIS_MNEMONIC_NOP;
        op->length = d.length;
        return op;
    }
    good = good && d.operand_count_visible <= ZYDIS_MAX_OPERAND_COUNT_VISIBLE &&
           ZYAN_SUCCESS(
               ZydisDecoderDecodeOperands(&s->decoder, &context, &d, z, d.operand_count_visible)) &&
           translate(op, &d, z);
    if (!good) {
        op->address = 0;
        spin_stop(s, SPIN_UNKNOWN, SPIN_R_UNSUPPORTED);
        return NULL;
    }
    return op;
}
