/* SPDX-License-Identifier: MIT */
#include "sched/waitmask.h"
#include "sched/frame.h"
#include "sched/view.h"

#include <errno.h>
#include <sys/syscall.h>

/* Flags of io_uring_enter(2): it waits; the argument points to a structure, or with both of the
 * last ones is an index in a registered region. */
enum { GETEVENTS = 1 << 0, EXT_ARG = 1 << 3, EXT_ARG_REG = 1 << 6 };

static greg_t of_uring(const greg_t *g)
{
    const greg_t region = EXT_ARG | EXT_ARG_REG;
    return g[REG_R10] & GETEVENTS && (g[REG_R10] & region) != region ? g[REG_R8] : 0;
}

/* Return the argument that points to the mask or, if *indirect, to a structure that begins with a
 * pointer to it. Returns 0 if the call has no mask, or one in a registered region: handlers then
 * begin with the caller's mask. */
static greg_t pointer(long nr, const greg_t *g, bool *indirect)
{
    *indirect =
        nr == SYS_pselect6 || nr == IO_PGETEVENTS || (nr == IO_URING_ENTER && g[REG_R10] & EXT_ARG);
    switch (nr) {
    case SYS_rt_sigsuspend: return g[REG_RDI];
    case SYS_ppoll: return g[REG_R10];
    case SYS_pselect6:
    case IO_PGETEVENTS: return g[REG_R9];
    case SYS_epoll_pwait:
    case EPOLL_PWAIT2: return g[REG_R8];
    case IO_URING_ENTER: return of_uring(g);
    default: return 0;
    }
}

void waitmask_begins(struct thread *t, long nr)
{
    static const greg_t any[NGREG] = {[REG_RDI] = 1, [REG_R10] = 1, [REG_R9] = 1, [REG_R8] = 1};
    bool indirect;
    t->mask_call = pointer(nr, any, &indirect) ? (int16_t)nr : -1;
}

/* Return whether the instruction before is a system call that a signal has ended. io_pgetevents and
 * io_uring_enter may have events, too, and then return their number. */
static bool is_interrupted_call(const struct thread *t, const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    bool counts = t->nr == IO_PGETEVENTS || t->nr == IO_URING_ENTER;
    uint8_t code[2];
    return (g[REG_RAX] == -EINTR || (counts && g[REG_RAX] >= 0)) &&
           !lissom_guarded_copy(code, (const void *)(g[REG_RIP] - 2), 2) && code[0] == 0x0f &&
           code[1] == 0x05;
}

static bool of_registers(const struct thread *t, const greg_t *g, uint64_t *mask)
{
    const uint64_t never = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
    bool indirect;
    if (t->mask_call != t->nr)
        return false;
    uintptr_t at = (uintptr_t)pointer(t->nr, g, &indirect);
    if (at && indirect && lissom_guarded_copy(&at, (const void *)at, sizeof at))
        return false;
    if (!at || lissom_guarded_copy(mask, (const void *)at, sizeof *mask))
        return false;
    *mask &= ~never;
    return true;
}

bool waitmask_of_call(const struct thread *t, const struct user_registers *r, uint64_t *mask)
{
    const greg_t g[NGREG] = {
        [REG_RDI] = r->rdi, [REG_R10] = r->r10, [REG_R9] = r->r9, [REG_R8] = r->r8};
    return of_registers(t, g, mask);
}

uint64_t waitmask_in_force(const struct thread *t, const ucontext_t *uc)
{
    uint64_t mask;
    return is_interrupted_call(t, uc) && of_registers(t, uc->uc_mcontext.gregs, &mask) ? mask
                                                                                       : t->mask;
}

uint64_t waitmask_of_handler(struct thread *t, const ucontext_t *uc)
{
    if (!t)
        return frame_mask(uc);
    uint64_t mask = waitmask_in_force(t, uc);
    if (is_interrupted_call(t, uc))
        t->mask_call = -1;
    return mask;
}
