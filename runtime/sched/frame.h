/* SPDX-License-Identifier: MIT
 *
 * Signal frames: the kernel pushes one for a handler (struct rt_sigframe), and rt_sigreturn(2)
 * takes it back. The runtime moves them: from a carrier's signal stack to the stack of the
 * program's handler, or to the save area of a thread that leaves its carrier.
 *
 * Async-signal-safe, no locks.
 */
#ifndef LISSOM_FRAME_H
#define LISSOM_FRAME_H

#include "sched/view.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct carrier;
struct thread;

enum {
    /* of a carrier: room for two nested frames, of 11 KiB with AMX, and our own functions */
    SIGNAL_STACK = 49152,
    SAVE_AREA = 16384, /* room for one frame */
    /* size of the kernel's struct ucontext, a prefix of libc's */
    FRAME_UCONTEXT = offsetof(ucontext_t, uc_sigmask) + 8,
    FRAME_SIGINFO = 48, /* bytes of siginfo_t that the kernel uses; the others are 0 */
};

/* State of the call or instruction that a handler of the program interrupted. */
struct frame_note {
    uint64_t magic;
    /* ours: where it resumes; theirs: the same state as the handler saw it */
    struct view ours, theirs;
    /* copies of the fields of struct thread */
    uintptr_t kernel_wait;
    long nr;
    bool foreign_wait, has_slot, kernel_has_mask;
};

struct signal_frame { /* as the kernel lays it out; the vector state is at uc_mcontext.fpregs */
    void (*restorer)(void);
    char context[FRAME_UCONTEXT];
    char info[FRAME_SIGINFO];
    struct frame_note note;
};
_Static_assert(offsetof(struct signal_frame, info) == 312, "the kernel's struct rt_sigframe");
_Static_assert(sizeof(struct signal_frame) == 440, "the kernel's struct rt_sigframe");

/* Size and contents of a frame's vector state. The kernel writes this header into the FXSAVE area
 * at the beginning of that state: struct _fpx_sw_bytes of asm/sigcontext.h. */
struct vector_header {
    uint32_t magic, bytes;
    uint64_t features;
    uint32_t size;
};
enum { VECTOR_LEGACY = 512 /* FXSAVE */, VECTOR_HEADER_AT = 464, VECTOR_MAGIC = 0x46505853 };
#define VECTOR_TILES (1ull << 18) /* AMX, in `features` and in XCR0 */

static inline ucontext_t *frame_context(struct signal_frame *f) { return (ucontext_t *)f->context; }
static inline siginfo_t *frame_info(struct signal_frame *f) { return (siginfo_t *)f->info; }
/* Return the frame around a context, as returned by frame_context or passed to a handler of the
 * program. */
static inline struct signal_frame *frame_around(uintptr_t context)
{
    return (struct signal_frame *)(context - offsetof(struct signal_frame, context));
}

static inline uint64_t frame_mask(const ucontext_t *uc)
{
    uint64_t mask;
    __builtin_memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    return mask;
}
static inline void frame_set_mask(ucontext_t *uc, uint64_t mask)
{
    __builtin_memcpy(&uc->uc_sigmask, &mask, sizeof mask);
}

/* Return whether one frame of this machine fits into a save area, and two onto a signal stack. */
bool frames_fit(void);

/* Copy the context, its vector state and `info` into the save area at `area`, 64-byte aligned.
 * Returns the copy. */
struct signal_frame *frame_save(void *area, const ucontext_t *uc, const siginfo_t *info);

/* Copy the frame `from`, on the program's stack, into t's save area. Returns NULL if it cannot be
 * read. */
struct signal_frame *frame_load(const struct thread *t, const struct signal_frame *from);

/* Push a frame for a handler of the program below `top`, as the kernel would; the handler returns
 * to `restorer`. The note takes the place of bytes of siginfo_t that the kernel leaves 0. Returns
 * NULL if the frame would reach below `lowest`, or if the memory cannot be written. Pre: SIGSEGV
 * and SIGBUS are not blocked. */
struct signal_frame *frame_push(uintptr_t top, uintptr_t lowest, const ucontext_t *uc,
                                const siginfo_t *info, const struct frame_note *note,
                                void (*restorer)(void));

/* Make the kernel allocate room for AMX tiles on this kernel thread, that of k, if the frame of
 * `uc` has such room. Call it before rt_sigreturn(2) to `uc`: without that room, the kernel takes a
 * frame of this size but loads only SSE from it. Uses a tile for a moment, once for each carrier.
 * Pre: the vector registers are not in use. */
void frame_make_room(struct carrier *k, const ucontext_t *uc);

/* Return the note of a frame that frame_push has made; NULL if another made it. */
struct frame_note *frame_note(struct signal_frame *f);

/* Make rt_sigreturn(2) from `uc` call f(rdi, rsi, rdx) on `stack`, with initial vector
 * registers. */
void frame_redirect(ucontext_t *uc, uintptr_t f, uintptr_t stack, uintptr_t rdi, uintptr_t rsi,
                    uintptr_t rdx);

#endif
