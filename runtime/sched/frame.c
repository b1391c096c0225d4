/* SPDX-License-Identifier: MIT */
#include "sched/frame.h"
#include "sched/thread.h"
#include "sched/user.h"

#include <cpuid.h>

enum {
    ALIGN = 64,          /* of an XSAVE area */
    RED_FLAGS = 0x10500, /* RF, DF, TF: cleared for a handler */
    OUR_CODE = 24576,    /* room for our own functions on a signal stack */
};
#define NOTE_MAGIC 0x6c6973736f6d6e74ul

bool frames_fit(void)
{
    unsigned a, bytes = 0, c, d;
    if (!__get_cpuid_count(0xd, 0, &a, &bytes, &c, &d))
        bytes = VECTOR_LEGACY;
    size_t frame = sizeof(struct signal_frame) + bytes + 2 * ALIGN;
    return frame <= SAVE_AREA && 2 * frame + OUR_CODE <= SIGNAL_STACK;
}

static size_t bytes_by(const struct vector_header *h)
{
    return h->magic == VECTOR_MAGIC && h->bytes >= VECTOR_LEGACY ? h->bytes : VECTOR_LEGACY;
}

static size_t vector_bytes(const ucontext_t *uc)
{
    const char *v = (const char *)uc->uc_mcontext.fpregs;
    struct vector_header h;
    if (!v)
        return 0;
    __builtin_memcpy(&h, v + VECTOR_HEADER_AT, sizeof h);
    return bytes_by(&h);
}

static void fill(struct signal_frame *f, const ucontext_t *uc, const siginfo_t *info,
                 uintptr_t vectors)
{
    __builtin_memcpy(f->context, uc, FRAME_UCONTEXT);
    __builtin_memcpy(f->info, info, FRAME_SIGINFO);
    __builtin_memcpy(f->context + offsetof(ucontext_t, uc_mcontext.fpregs), &vectors,
                     sizeof vectors);
}

struct signal_frame *frame_save(void *area, const ucontext_t *uc, const siginfo_t *info)
{
    /* 440 + 8 is a multiple of 64 */
    struct signal_frame *f = (struct signal_frame *)((char *)area + 8);
    size_t bytes = vector_bytes(uc);
    fill(f, uc, info, bytes ? (uintptr_t)(f + 1) : 0);
    __builtin_memcpy(f + 1, uc->uc_mcontext.fpregs, bytes);
    return f;
}

struct signal_frame *frame_load(const struct thread *t, const struct signal_frame *from)
{
    struct signal_frame *f = (struct signal_frame *)((char *)t->save_area + 8);
    ucontext_t *uc = frame_context(f);
    struct vector_header h;
    if (user_copy(t, f, from, sizeof *f))
        return NULL;
    const char *v = (const char *)uc->uc_mcontext.fpregs;
    if (!v)
        return f;
    if (user_copy(t, &h, v + VECTOR_HEADER_AT, sizeof h))
        return NULL;
    size_t bytes = bytes_by(&h);
    if (bytes > SAVE_AREA - 8 - sizeof *f || user_copy(t, f + 1, v, bytes))
        return NULL;
    uc->uc_mcontext.fpregs = (void *)(f + 1);
    return f;
}

struct signal_frame *frame_push(uintptr_t top, uintptr_t lowest, const ucontext_t *uc,
                                const siginfo_t *info, const struct frame_note *note,
                                void (*restorer)(void))
{
    size_t bytes = vector_bytes(uc);
    uintptr_t vectors = (top - bytes) & ~(uintptr_t)(ALIGN - 1);
    uintptr_t at = ((vectors - sizeof(struct signal_frame)) & ~15ul) - 8; /* as after a call */
    struct signal_frame f;
    if (at > top || at < lowest)
        return NULL;
    fill(&f, uc, info, bytes ? vectors : 0);
    f.restorer = restorer;
    f.note = *note;
    f.note.magic = NOTE_MAGIC;
    if (bytes && lissom_guarded_copy((void *)vectors, uc->uc_mcontext.fpregs, bytes))
        return NULL;
    return lissom_guarded_copy((void *)at, &f, sizeof f) ? NULL : (struct signal_frame *)at;
}

void frame_make_room(struct carrier *k, const ucontext_t *uc)
{
    static const struct { /* Intel SDM 1, 18.3: palette 1, whose first tile has one row */
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } one_tile __attribute__((aligned(64))) = {.palette = 1, .row_bytes = {64}, .rows = {1}};
    const char *v = (const char *)uc->uc_mcontext.fpregs;
    struct vector_header h;
    if (!v || k->had_tiles)
        return;
    __builtin_memcpy(&h, v + VECTOR_HEADER_AT, sizeof h);
    if (h.magic != VECTOR_MAGIC || !(h.features & VECTOR_TILES))
        return;
    __asm__ volatile("ldtilecfg %0\n\ttilezero %%tmm0\n\ttilerelease" : : "m"(one_tile));
    k->had_tiles = true;
}

struct frame_note *frame_note(struct signal_frame *f)
{
    return f->note.magic == NOTE_MAGIC ? &f->note : NULL;
}

void frame_redirect(ucontext_t *uc, uintptr_t f, uintptr_t stack, uintptr_t rdi, uintptr_t rsi,
                    uintptr_t rdx)
{
    greg_t *g = uc->uc_mcontext.gregs;
    g[REG_RIP] = (greg_t)f;
    g[REG_RSP] = (greg_t)stack;
    g[REG_RDI] = (greg_t)rdi;
    g[REG_RSI] = (greg_t)rsi;
    g[REG_RDX] = (greg_t)rdx;
    g[REG_RAX] = 0;
    g[REG_EFL] &= ~(greg_t)RED_FLAGS;
    uc->uc_mcontext.fpregs = NULL;
}
