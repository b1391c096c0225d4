/* SPDX-License-Identifier: MIT
 *
 * Decode instructions (Zydis), and find where they start by sweeping functions.
 *
 * x86 code cannot be decoded from an arbitrary byte. But compilers emit each function as one
 * contiguous run of instructions, so decoding from its first byte to its last gives the true
 * boundaries. Data inside a function would break that. Compilers for x86-64 put jump tables and
 * constants into .rodata, and assembly that does otherwise rarely has unwind tables. A sweep that
 * does not end exactly at the function's end is taken as a sign of data, and the function is left
 * alone.
 */
#include "internal.h"

#include <Zydis/Decoder.h>
#include <Zydis/Register.h>

static ZydisDecoder decoder;
static ZydisDecoder lengths; /* decodes lengths and little else: three times as fast */

void code_init(void)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    lengths = decoder;
    ZydisDecoderEnableMode(&lengths, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
}

/* Return whether an instruction must stay where it is: it transfers control, may trap to the kernel
 * on purpose, or depends on its address. */
static bool must_stay(const ZydisDecodedInstruction *d)
{
    switch (d->meta.category) {
    case ZYDIS_CATEGORY_CALL: /* would push the stub's address, which unwinders do not know */
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_COND_BR: /* with loop, jrcxz and xbegin */
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_INTERRUPT: /* int3 of a debugger among them */
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_CET: /* endbr64 must be where the indirect jump leads */
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP: return true;
    default:
        return d->mnemonic == ZYDIS_MNEMONIC_UD0 || d->mnemonic == ZYDIS_MNEMONIC_UD1 ||
               d->mnemonic == ZYDIS_MNEMONIC_UD2 || d->mnemonic == ZYDIS_MNEMONIC_HLT;
    }
}

bool code_decode(uintptr_t addr, uintptr_t limit, struct insn *out)
{
    ZydisDecodedInstruction d;
    if (addr >= limit || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                             &decoder, NULL, (const void *)addr, limit - addr, &d)))
        return false;
    *out = (struct insn){.len = d.length, .kind = must_stay(&d) ? INSN_FIXED : INSN_PLAIN};
    uintptr_t next = addr + d.length;
    const uint8_t *bytes = (const uint8_t *)addr;

    if (d.raw.imm[0].is_relative) {
        out->relative = true;
        out->target = next + (uintptr_t)d.raw.imm[0].value.s;
        /* Only the unprefixed forms: a 66 prefix makes the target 16 bits wide on some CPUs, 2E and
         * 3E are hints, F2 is MPX. None is worth a rule of its own. */
        if (d.length == 2 && (bytes[0] & 0xf0) == 0x70) {
            out->kind = INSN_JCC;
            out->condition = bytes[0] & 0x0f;
        } else if (d.length == 6 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80) {
            out->kind = INSN_JCC;
            out->condition = bytes[1] & 0x0f;
        } else if ((d.length == 2 && bytes[0] == 0xeb) || (d.length == 5 && bytes[0] == 0xe9)) {
            out->kind = INSN_JMP;
        } else if (d.length == 5 && bytes[0] == 0xe8) {
            out->kind = INSN_CALL;
        } else {
            out->kind = INSN_FIXED;
        }
    } else if (d.length == 2 && bytes[0] == 0x0f && bytes[1] == 0x05) {
        out->kind = INSN_SYSCALL;
    } else if ((d.attributes & ZYDIS_ATTRIB_HAS_MODRM) && d.raw.modrm.mod == 0 &&
               d.raw.modrm.rm == 5) {
        /* RIP-relative in 64-bit mode. With an address-size prefix it is EIP-relative, and cannot
         * be re-based. */
        if (d.address_width != 64 || d.raw.disp.size != 32)
            out->kind = INSN_FIXED;
        out->disp_at = d.raw.disp.offset;
        out->target = next + (uintptr_t)d.raw.disp.value;
    }
    return true;
}

/* --- instruction boundaries ------------------------------------------------------------------- */

static void set_boundary(struct object *o, uintptr_t addr)
{
    uintptr_t bit = addr - o->code_lo;
    o->boundary[bit / 8] |= (uint8_t)(1u << (bit % 8));
}

bool code_boundary(const struct object *o, uintptr_t addr)
{
    uintptr_t bit = addr - o->code_lo;
    return addr >= o->code_lo && addr < o->code_hi && (o->boundary[bit / 8] >> (bit % 8) & 1);
}

uintptr_t code_previous(const struct object *o, uintptr_t addr, uintptr_t lo)
{
    for (uintptr_t p = addr - 1; p >= lo && addr - p <= 15; p--)
        if (code_boundary(o, p))
            return p;
    return 0;
}

static bool sweep(struct object *o, uintptr_t lo, uintptr_t hi)
{
    ZydisDecodedInstruction d;
    for (uintptr_t p = lo; p < hi; p += d.length) {
        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeInstruction(&lengths, NULL, (const void *)p, hi - p, &d)))
            return false;
        set_boundary(o, p);
    }
    return true;
}

enum { UNKNOWN = 0, DECODED = 1, BROKEN = 2 }; /* two bits per FDE */

static bool sweep_fde(struct object *o, const struct fde *fde)
{
    /* The FDE of a signal trampoline starts a byte early, so that unwinders that search for "return
     * address minus one" find it. Nothing there is patched. */
    if (fde->signal)
        return false;
    uint8_t *state = &o->swept[fde->index / 4];
    unsigned shift = fde->index % 4 * 2;
    if ((*state >> shift & 3) == UNKNOWN)
        *state |= (uint8_t)((sweep(o, fde->lo, fde->hi) ? DECODED : BROKEN) << shift);
    return (*state >> shift & 3) == DECODED;
}

/* Sweep code between FDEs. glibc's clone and clone3 leave the call itself out of the unwind data,
 * so that no unwinder passes a new thread's first frame. If the last instruction of an FDE
 * falls through, the code behind it is swept, too, up to the first instruction that does not fall
 * through. */
static bool sweep_gap(struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi)
{
    struct fde fde;
    struct insn in;
    uintptr_t next;
    if (!eh_in_front(o, addr, &fde, &next) || !sweep_fde(o, &fde))
        return false;
    uintptr_t p = code_previous(o, fde.hi, fde.lo);
    const struct segment *s = elf_code(o, addr);
    if (!p || !s)
        return false;
    if (next > s->hi)
        next = s->hi;
    while (code_decode(p, p < fde.hi ? fde.hi : next, &in)) {
        set_boundary(o, p);
        p += in.len;
        if (p > addr && p >= next)
            break;
        if (in.kind == INSN_FIXED || in.kind == INSN_CALL || in.kind == INSN_JMP)
            break;
    }
    *lo = fde.lo;
    *hi = p;
    return p > addr;
}

bool code_sweep(struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi)
{
    struct fde fde;
    if (eh_around(o, addr, &fde)) {
        *lo = fde.lo;
        *hi = fde.hi;
        return sweep_fde(o, &fde);
    }
    /* The results are not stored: such functions are rare. */
    if (sweep_gap(o, addr, lo, hi))
        return true;
    *lo = *hi = 0;
    return elf_symbol_around(o, addr, lo, hi) && !eh_starts_within(o, *lo, *hi) &&
           sweep(o, *lo, *hi);
}

/* --- the call's number ------------------------------------------------------------------------ */

/* The effect of an instruction on rax: none, set to *value, or something else. */
enum effect { RAX_KEPT, RAX_SET, RAX_LOST };

static enum effect effect_on_rax(uintptr_t addr, uintptr_t limit, uint32_t *value)
{
    ZydisDecodedInstruction d;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, (const void *)addr, limit - addr, &d, op)))
        return RAX_LOST;
    bool whole = d.operand_count_visible == 2 && op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                 (op[0].reg.value == ZYDIS_REGISTER_EAX || op[0].reg.value == ZYDIS_REGISTER_RAX);
    if (whole && d.mnemonic == ZYDIS_MNEMONIC_MOV && op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        *value = (uint32_t)op[1].imm.value.u;
        return RAX_SET;
    }
    if (whole && d.mnemonic == ZYDIS_MNEMONIC_XOR && op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        op[1].reg.value == op[0].reg.value) {
        *value = 0;
        return RAX_SET;
    }
    for (unsigned i = 0; i < d.operand_count; i++)
        if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op[i].reg.value) ==
                ZYDIS_REGISTER_RAX)
            return RAX_LOST;
    return RAX_KEPT;
}

/* Return whether the instruction may put a number computed elsewhere into eax. */
static bool writes_whole_rax(uintptr_t addr, uintptr_t limit)
{
    ZydisDecodedInstruction d;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, (const void *)addr, limit - addr, &d, op)))
        return false;
    switch (d.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_XCHG:
        return op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               (op[0].reg.value == ZYDIS_REGISTER_EAX || op[0].reg.value == ZYDIS_REGISTER_RAX ||
                d.mnemonic == ZYDIS_MNEMONIC_XCHG);
    default: return false;
    }
}

static bool futex_number(uint32_t nr)
{
    return nr == 202 /* futex */ || nr == 449 /* futex_waitv */ ||
           (nr >= 454 && nr <= 456) /* futex2 */;
}

bool code_number(const struct object *o, const struct site *s, uint32_t *number)
{
    if (!o->boundary)
        return false; /* not swept: its windows came from the cache */
    /* Go back as long as execution can only have come from the instruction before. */
    for (uintptr_t p = s->syscall, before; s->fn_lo < p && !target_is(s, p); p = before) {
        struct insn in;
        before = code_previous(o, p, s->fn_lo);
        if (!before || !code_decode(before, s->fn_hi, &in) || before + in.len != p)
            return false;
        /* a jump that is not taken leaves registers alone */
        if (in.kind != INSN_PLAIN && in.kind != INSN_JCC)
            return false;
        switch (effect_on_rax(before, s->fn_hi, number)) {
        case RAX_SET: return true;
        case RAX_LOST: return false;
        case RAX_KEPT: break;
        }
    }
    return false;
}

bool code_not_futex(const struct object *o, const struct site *s)
{
    uint32_t number;
    return code_number(o, s, &number) && !futex_number(number);
}

/* --- bytes in no known function --------------------------------------------------------------- */

/* Hand-written assembly without unwind data contains code, and tables between the code. A system
 * call needs its number in eax, which is usually set next to the call. So search for a run of
 * instructions that ends at these bytes, does nothing odd, and sets eax to what could be a futex
 * call's number. Without one the bytes count as data. (A number that is set more than REACH bytes
 * before the call would be missed; no known library has such code.) */
#define REACH 40

bool code_plausible_futex(const struct object *o, uintptr_t addr)
{
    const struct segment *s = elf_code(o, addr);
    struct insn in;
    uintptr_t p = addr;
    /* Code has to follow as well. Two zero bytes would be add %al,(%rax): that is data, or the
     * upper half of a displacement. */
    for (unsigned i = 0; i < 4; i++, p += in.len) {
        if (!code_decode(p, s->hi, &in) || (in.len == 2 && !*(const uint16_t *)p))
            return false;
        if (i > 0 && in.kind != INSN_PLAIN)
            break;
    }
    for (uintptr_t start = addr - s->lo > REACH ? addr - REACH : s->lo; start < addr; start++) {
        bool set = false;
        for (p = start; p < addr; p += in.len) {
            uint32_t nr;
            if (!code_decode(p, s->hi, &in) || (in.kind != INSN_PLAIN && in.kind != INSN_JCC))
                break;
            switch (effect_on_rax(p, s->hi, &nr)) {
            case RAX_SET: set = futex_number(nr); break;
            case RAX_LOST: set = writes_whole_rax(p, s->hi); break;
            case RAX_KEPT: break;
            }
        }
        if (p == addr && set)
            return true;
    }
    return false;
}
