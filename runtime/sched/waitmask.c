/* SPDX-License-Identifier: MIT */
#include "sched/waitmask.h"
#include "sched/frame.h"
#include "sched/view.h"

#include <errno.h>
#include <sys/syscall.h>

/* The argument that points to the mask; or to a structure with a pointer to it and its size. 0: the
 * call has none. */
static greg_t pointer(long nr, const greg_t *g, bool *indirect)
{
    *indirect = nr == SYS_pselect6;
    switch (nr) {
    case SYS_rt_sigsuspend: return g[REG_RDI];
    case SYS_ppoll: return g[REG_R10];
    case SYS_pselect6: return g[REG_R9];
    case SYS_epoll_pwait:
    case 441 /* epoll_pwait2 */: return g[REG_R8];
    default: return 0;
    }
}

void waitmask_begins(struct thread *t, long nr)
{
    static const greg_t any[NGREG] = {[REG_RDI] = 1, [REG_R10] = 1, [REG_R9] = 1, [REG_R8] = 1};
    bool indirect;
    t->mask_call = pointer(nr, any, &indirect) ? (int16_t)nr : -1;
}

/* The instruction before is the system call, and a signal has ended it. */
static bool is_interrupted_call(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    uint8_t code[2];
    return g[REG_RAX] == -EINTR && !lissom_guarded_copy(code, (const void *)(g[REG_RIP] - 2), 2) &&
           code[0] == 0x0f && code[1] == 0x05;
}

uint64_t waitmask_of_handler(struct thread *t, const ucontext_t *uc)
{
    const uint64_t never = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
    bool indirect;
    uint64_t mask;
    if (!t || t->mask_call != t->nr || !is_interrupted_call(uc))
        return frame_mask(uc);
    t->mask_call = -1;
    uintptr_t at = (uintptr_t)pointer(t->nr, uc->uc_mcontext.gregs, &indirect);
    if (at && indirect && lissom_guarded_copy(&at, (const void *)at, sizeof at))
        return frame_mask(uc);
    if (!at || lissom_guarded_copy(&mask, (const void *)at, sizeof mask))
        return frame_mask(uc);
    return mask & ~never;
}
