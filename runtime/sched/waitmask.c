/* SPDX-License-Identifier: MIT */
#include "sched/waitmask.h"
#include "sched/frame.h"
#include "sched/view.h"

#include <errno.h>
#include <sys/syscall.h>

/* Return the argument that points to the mask or, if *indirect, to a structure with a pointer to it
 * and its size. Returns 0 if the call has no mask. */
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

/* Return whether the instruction before is a system call that a signal has ended. */
static bool is_interrupted_call(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    uint8_t code[2];
    return g[REG_RAX] == -EINTR && !lissom_guarded_copy(code, (const void *)(g[REG_RIP] - 2), 2) &&
           code[0] == 0x0f && code[1] == 0x05;
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
    return is_interrupted_call(uc) && of_registers(t, uc->uc_mcontext.gregs, &mask) ? mask
                                                                                    : t->mask;
}

uint64_t waitmask_of_handler(struct thread *t, const ucontext_t *uc)
{
    if (!t)
        return frame_mask(uc);
    uint64_t mask = waitmask_in_force(t, uc);
    if (is_interrupted_call(uc))
        t->mask_call = -1;
    return mask;
}
