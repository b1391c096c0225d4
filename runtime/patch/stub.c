/* SPDX-License-Identifier: MIT
 *
 * The bytes of a stub (patch.h has its shape).
 *
 * Flags must survive until the system call: displaced instructions before it may set them, and
 * those behind it may test them. So the class is tested by moves and jrcxz only. rcx and r11 are
 * free: `syscall` overwrites both.
 */
#include "internal.h"

/* Note that from here on the stub of p stands for the instruction at `native`. */
static void note(const struct emitter *e, struct patch_site *p, uintptr_t native)
{
    p->map[p->insns].native = (uint8_t)(native - p->window);
    p->map[p->insns].stub = (uint8_t)(e->address - p->stub);
    p->insns++;
}

/* Displace the instructions of [from, to) of s's window. Returns false if one cannot be decoded. */
static bool displace(struct emitter *e, const struct site *s, struct patch_site *out,
                     uintptr_t from, uintptr_t to)
{
    struct insn in;
    for (uintptr_t p = from; p < to; p += in.len) {
        if (!code_decode(p, s->fn_hi, &in))
            return false;
        note(e, out, p);
        emit_insn(e, p, &in);
    }
    return true;
}

size_t stub_bound(const struct site *s)
{
    /* A two-byte jump grows to six. */
    return ((size_t)s->window_len + 4 + 36 + 2 + 5 + 15) & ~15ul;
}

size_t stub_write(uint8_t *at, const struct site *s, const struct stub_target *t,
                  struct patch_site *out)
{
    struct emitter e = {at, (uintptr_t)at, false};
    uintptr_t end = s->window + s->window_len;
    *out = (struct patch_site){.syscall = s->syscall,
                               .stub = (uintptr_t)at,
                               .window = s->window,
                               .window_len = s->window_len};
    __builtin_memcpy(out->original, (const void *)s->window, s->window_len);

    if (!displace(&e, s, out, s->window, s->syscall))
        return 0;

    note(&e, out, s->syscall);
    EMIT(&e, 0x0f, 0xb7, 0xc8); /* movzwl %ax,%ecx */
    EMIT(&e, 0x49, 0xbb);       /* movabs $class_table,%r11 */
    emit_64(&e, (uintptr_t)t->class_table);
    EMIT(&e, 0x41, 0x0f, 0xb6, 0x0c, 0x0b); /* movzbl (%r11,%rcx),%ecx */
    EMIT(&e, 0xe3, 16);                     /* jrcxz direct */
    EMIT(&e, 0x48, 0xb9);                   /* movabs $site,%rcx */
    emit_64(&e, (uintptr_t)out);
    EMIT(&e, 0xff, 0x25); /* jmp *entry_word(%rip) */
    emit_rel32(&e, t->entry_word);

    out->direct = e.address;
    EMIT(&e, 0x0f, 0x05);

    out->after = e.address;
    if (!displace(&e, s, out, s->syscall + 2, end))
        return 0;
    note(&e, out, end);
    emit_jump(&e, end); /* jmp resume */

    out->stub_end = e.address;
    intptr_t jump = (intptr_t)((uintptr_t)at - (s->window + 5));
    return e.bad || !emit_fits(jump) ? 0 : (size_t)(e.at - at);
}

size_t stub_write_function(uint8_t *at, const struct site *s, uintptr_t entry_word,
                           struct patch_redirect *redirect, struct patch_site *out)
{
    struct emitter e = {at, (uintptr_t)at, false};
    uintptr_t end = s->window + s->window_len;
    *out = (struct patch_site){.syscall = s->window,
                               .stub = (uintptr_t)at,
                               .window = s->window,
                               .window_len = s->window_len};
    __builtin_memcpy(out->original, (const void *)s->window, s->window_len);

    note(&e, out, s->window);
    EMIT(&e, 0x49, 0xbb); /* movabs $redirect,%r11 */
    emit_64(&e, (uintptr_t)redirect);
    EMIT(&e, 0xff, 0x25); /* jmp *entry_word(%rip) */
    emit_rel32(&e, entry_word);

    redirect->real = out->direct = out->after = e.address;
    if (!displace(&e, s, out, s->window, end))
        return 0;
    note(&e, out, end);
    emit_jump(&e, end);

    out->stub_end = e.address;
    intptr_t jump = (intptr_t)((uintptr_t)at - (s->window + 5));
    return e.bad || !emit_fits(jump) ? 0 : (size_t)(e.at - at);
}

void stub_jump(const struct patch_site *p, uint8_t bytes[32])
{
    int32_t rel = (int32_t)(intptr_t)(p->stub - (p->window + 5));
    /* int3 behind the jump: a thread that gets there after all must trap, not run half an
     * instruction. */
    __builtin_memset(bytes, 0xcc, 32);
    bytes[0] = 0xe9;
    __builtin_memcpy(bytes + 1, &rel, 4);
}
