/* SPDX-License-Identifier: MIT
 *
 * Write instructions, in place or into a buffer that is copied there. An instruction copied
 * elsewhere needs another displacement if that counts from the instruction, and a short jump a
 * longer form.
 */
#include "internal.h"

bool emit_fits(intptr_t displacement) { return displacement == (int32_t)displacement; }

void emit(struct emitter *e, const void *bytes, size_t n)
{
    __builtin_memcpy(e->at, bytes, n);
    e->at += n;
    e->address += n;
}

void emit_64(struct emitter *e, uint64_t v) { emit(e, &v, 8); }

void emit_rel32(struct emitter *e, uintptr_t target)
{
    intptr_t rel = (intptr_t)(target - (e->address + 4));
    int32_t low = (int32_t)rel;
    e->bad |= !emit_fits(rel);
    emit(e, &low, 4);
}

void emit_jump(struct emitter *e, uintptr_t target)
{
    EMIT(e, 0xe9);
    emit_rel32(e, target);
}

/* Emit a call whose return address is that of the original call: code that reads it, above all an
 * unwinder, finds the native address. */
static void emit_call(struct emitter *e, uintptr_t target, uintptr_t return_to)
{
    uint32_t half[2] = {(uint32_t)return_to, (uint32_t)(return_to >> 32)};
    EMIT(e, 0x48, 0x8d, 0x64, 0x24, 0xf8); /* lea -8(%rsp),%rsp */
    EMIT(e, 0xc7, 0x04, 0x24);             /* movl $low,(%rsp) */
    emit(e, &half[0], 4);
    EMIT(e, 0xc7, 0x44, 0x24, 0x04); /* movl $high,4(%rsp) */
    emit(e, &half[1], 4);
    emit_jump(e, target);
}

void emit_insn(struct emitter *e, uintptr_t from, const struct insn *in)
{
    if (in->kind == INSN_JCC) {
        EMIT(e, 0x0f, 0x80 | in->condition);
        emit_rel32(e, in->target);
    } else if (in->kind == INSN_JMP) {
        emit_jump(e, in->target);
    } else if (in->kind == INSN_CALL) {
        emit_call(e, in->target, from + in->len);
    } else {
        uint8_t *copy = e->at;
        emit(e, (const void *)from, in->len);
        if (in->disp_at) {
            intptr_t disp = (intptr_t)(in->target - e->address);
            int32_t low = (int32_t)disp;
            e->bad |= !emit_fits(disp);
            __builtin_memcpy(copy + in->disp_at, &low, 4);
        }
    }
}
