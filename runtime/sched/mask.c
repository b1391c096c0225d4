/* SPDX-License-Identifier: MIT
 *
 * Signal masks: docs/signals.md.
 */
#include "sched/inbox.h"
#include "sched/signals.h"
#include "sched/user.h"

#include <errno.h>

void signals_mask_is(struct thread *t, uint64_t mask)
{
    bool blocked = mask & (signal_bit(SIGSEGV) | signal_bit(SIGBUS));
    t->home->mask = mask;
    t->deaf = mask & (SYNCHRONOUS | DOORBELLS);
    if (blocked == t->faults_blocked)
        return;
    t->faults_blocked = blocked;
    __atomic_fetch_add(&sched.faults_blocked, blocked ? 1 : -1u, __ATOMIC_SEQ_CST);
}

/* Here and not by the kernel alone: what arrived before the call is handled first, with the mask
 * that let it through. The inbox would otherwise be sent again blocked, behind newer signals. */
long signals_sigprocmask(struct thread *t, struct user_registers *r)
{
    /* nothing that the program blocks may get through meanwhile: it would be kept, and the call
     * begun again */
    uint64_t set = 0, old, new;
    r->rax = -EINVAL;
    if (r->r10 != 8 || (r->rsi && (r->rdi < SIG_BLOCK || r->rdi > SIG_SETMASK)))
        return ACTION_RETURN;
    r->rax = -EFAULT;
    if (r->rsi && user_copy(t, &set, (const void *)r->rsi, sizeof set))
        return ACTION_RETURN;
    carrier_go_home(t);
    old = signals_block_all();
    if (!inbox_empty(t->home)) {
        signals_set_mask(old);
        return signals_leave(t, r, ACTION_RESTART);
    }
    new = old;
    if (r->rsi)
        new = r->rdi == SIG_BLOCK ? old | set : r->rdi == SIG_UNBLOCK ? old & ~set : set;
    new &= ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
    /* counted as long as it is so */
    bool before = new &(signal_bit(SIGSEGV) | signal_bit(SIGBUS));
    if (before)
        signals_mask_is(t, new);
    signals_set_mask(new);
    if (!before)
        signals_mask_is(t, new);
    if (!r->rdx || !user_copy(t, (void *)r->rdx, &old, sizeof old))
        r->rax = 0;
    return ACTION_RETURN;
}

bool signals_took_doorbell(struct thread *t, const struct user_registers *r)
{
    siginfo_t info;
    if (r->rax != QUIET_DOORBELL && r->rax != COUNTED_DOORBELL)
        return false;
    if (user_copy(t, &info, (const void *)r->rsi, sizeof info) || !is_doorbell((int)r->rax, &info))
        return false;
    __atomic_store_n(&t->home->rung, false, __ATOMIC_SEQ_CST);
    return true;
}
