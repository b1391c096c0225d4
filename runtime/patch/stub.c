/* SPDX-License-Identifier: MIT
 *
 * The bytes of a stub (its shape is in patch.h).
 *
 * Flags must survive until the system call, since displaced instructions in front may set them and those
 * behind may test them; the test of the class therefore uses only moves and jrcxz.  rcx and r11 are free:
 * `syscall` overwrites both.
 */
#include "internal.h"

struct writer {
    uint8_t *start, *at;
    struct patch_site *site;
    bool bad; /* something is out of reach */
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    __builtin_memcpy(w->at, bytes, n);
    w->at += n;
}

#define PUT(w, ...) put(w, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_64(struct writer *w, uint64_t v) { put(w, &v, 8); }

static bool fits(intptr_t v) { return v == (int32_t)v; }

/* A displacement counted from the byte behind it. */
static void put_rel32(struct writer *w, uintptr_t target)
{
    intptr_t rel = (intptr_t)(target - ((uintptr_t)w->at + 4));
    int32_t low = (int32_t)rel;
    w->bad |= !fits(rel);
    put(w, &low, 4);
}

/* From here on the stub stands for the instruction at `native`. */
static void note(struct writer *w, uintptr_t native)
{
    struct patch_site *p = w->site;
    p->map[p->insns].native = (uint8_t)(native - p->window);
    p->map[p->insns].stub = (uint8_t)(w->at - w->start);
    p->insns++;
}

/* Copies one instruction to where it does the same. */
static void displace(struct writer *w, uintptr_t from, const struct insn *in)
{
    note(w, from);
    if (in->kind == INSN_JCC) {
        PUT(w, 0x0f, 0x80 | in->condition);
        put_rel32(w, in->target);
    } else if (in->kind == INSN_JMP) {
        PUT(w, 0xe9);
        put_rel32(w, in->target);
    } else {
        uint8_t *copy = w->at;
        put(w, (const void *)from, in->len);
        if (in->disp_at) {
            intptr_t disp = (intptr_t)(in->target - (uintptr_t)w->at);
            int32_t low = (int32_t)disp;
            w->bad |= !fits(disp);
            __builtin_memcpy(copy + in->disp_at, &low, 4);
        }
    }
}

size_t stub_bound(const struct site *s)
{
    /* A two-byte jump grows to six. */
    return ((size_t)s->window_len + 4 + 36 + 2 + 5 + 15) & ~15ul;
}

size_t stub_write(uint8_t *at, const struct site *s, const struct stub_target *t,
                  struct patch_site *out)
{
    struct writer w = { at, at, out, false };
    struct insn in;
    *out = (struct patch_site){ .syscall = s->syscall, .stub = (uintptr_t)at, .window = s->window,
                                .window_len = s->window_len };
    __builtin_memcpy(out->original, (const void *)s->window, s->window_len);

    uintptr_t p = s->window;
    for (; p < s->syscall; p += in.len) {
        if (!code_decode(p, s->fn_hi, &in))
            return 0;
        displace(&w, p, &in);
    }

    note(&w, s->syscall);
    PUT(&w, 0x0f, 0xb7, 0xc8);                   /* movzwl %ax,%ecx */
    PUT(&w, 0x49, 0xbb);                         /* movabs $class_table,%r11 */
    put_64(&w, (uintptr_t)t->class_table);
    PUT(&w, 0x41, 0x0f, 0xb6, 0x0c, 0x0b);       /* movzbl (%r11,%rcx),%ecx */
    PUT(&w, 0xe3, 16);                           /* jrcxz direct */
    PUT(&w, 0x48, 0xb9);                         /* movabs $site,%rcx */
    put_64(&w, (uintptr_t)out);
    PUT(&w, 0xff, 0x25);                         /* jmp *entry_word(%rip) */
    put_rel32(&w, t->entry_word);

    out->direct = (uintptr_t)w.at;
    PUT(&w, 0x0f, 0x05);

    out->after = (uintptr_t)w.at;
    uintptr_t end = s->window + s->window_len;
    for (p = s->syscall + 2; p < end; p += in.len) {
        if (!code_decode(p, s->fn_hi, &in))
            return 0;
        displace(&w, p, &in);
    }
    note(&w, end);
    PUT(&w, 0xe9);                               /* jmp resume */
    put_rel32(&w, end);

    out->stub_end = (uintptr_t)w.at;
    intptr_t jump = (intptr_t)((uintptr_t)at - (s->window + 5));
    return w.bad || !fits(jump) ? 0 : (size_t)(w.at - at);
}

void stub_jump(const struct patch_site *p, uint8_t bytes[32])
{
    int32_t rel = (int32_t)(intptr_t)(p->stub - (p->window + 5));
    /* int3 behind the jump: whoever gets there after all shall be seen, not run half an instruction. */
    __builtin_memset(bytes, 0xcc, 32);
    bytes[0] = 0xe9;
    __builtin_memcpy(bytes + 1, &rel, 4);
}
