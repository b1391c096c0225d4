/* SPDX-License-Identifier: MIT */
#include "clone.h"
#include "calls.h"
#include "lissom.h"
#include "sched/actions.h"
#include "sched/bind.h"
#include "sched/identity.h"
#include "sched/deferred.h"
#include "sched/mask.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "sched/user.h"

#include <errno.h>
#include <linux/sched.h>

/* Create a child that shares nothing with the parent: the usual fork. The child returns here, on
 * its copy of this stack. */
static long fork_here(struct thread *t, struct user_registers *r)
{
    /* Block signals to the child until lissom_forked has emptied the deferred queue, which holds
     * the parent's. */
    uint64_t mask = signals_block_all();
    long pid = prim_syscall6(r->rax, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
    t->clone_state = CLONE_NONE;
    if (pid == 0) {
        if (t->home->closed)
            mask = t->home->mask;
        lissom_forked(t);
    }
    signals_set_mask(mask);
    r->rax = pid;
    return ACTION_RETURN;
}

bool clone_is_shared_child(struct thread *t)
{
    if (t->clone_state == CLONE_NONE)
        return false;
    bool child = prim_pid() != sched.pid;
    if (child && t->clone_state == CLONE_SHARED) {
        if (t->clone_clears)
            actions_after_clearing();
        t->clone_clears = false; /* the parent waits, and does not need it */
        return true;
    }
    t->clone_state = CLONE_NONE;
    if (child)
        lissom_forked(t);
    return false;
}

long clone_call(struct thread *t, struct user_registers *r)
{
    uint64_t flags, stack, tls = 0;
    if (r->rax == SYS_fork || r->rax == SYS_vfork) {
        flags = r->rax == SYS_vfork ? CLONE_VM | CLONE_VFORK : 0;
        stack = 0;
    } else if (r->rax == SYS_clone) {
        flags = (uint64_t)r->rdi;
        stack = (uint64_t)r->rsi;
        tls = (uint64_t)r->r8;
    } else {
        enum { LEAST = 64, MOST = 4096 };
        struct clone_args a;
        if (r->rsi < LEAST || r->rsi > MOST)
            return ACTION_DIRECT; /* the kernel refuses it */
        size_t size = (size_t)r->rsi < sizeof a ? (size_t)r->rsi : sizeof a;
        __builtin_memset(&a, 0, sizeof a);
        if (user_copy(t, &a, (const void *)r->rdi, size)) {
            r->rax = -EFAULT;
            return ACTION_RETURN;
        }
        flags = a.flags;
        stack = a.stack;
        tls = a.tls;
    }
    /* let the threads that it has created before run, too, or they pile up */
    if ((flags & CLONE_THREAD) && slot_over_slice(t))
        slot_yield(t);
    carrier_migrate_home(t);
    if (flags & CLONE_THREAD) {
        cpu_unbind(t);
        identity_inherit(t, tls);
        if (t->own_affinity)
            cpu_will_be_own(tls);
        if (!(flags & CLONE_SETTLS)) {
            /* Two kernel threads would have one TLS, and so one struct thread. */
            lissom_give_up("a thread was created without thread-local storage of its own");
            return release_call(t, r);
        }
        sched.has_made_threads = true;
        mask_give_kernel(t, false);
        return ACTION_DIRECT;
    }
    if ((flags & CLONE_VM) && !(flags & CLONE_VFORK)) {
        /* The child runs beside this process, waits and wakes natively on the same words, and may
         * have the caller's TLS. */
        enum { OTHERS_MS = 200 };
        return call_natively(t, r, "a process was created that shares the memory", OTHERS_MS);
    }
    t->clone_state = flags & CLONE_VM ? CLONE_SHARED : CLONE_COPIED;
    t->clone_clears = flags & CLONE_CLEAR_SIGHAND;
    cpu_set_free(t);
    if (flags & CLONE_VM)
        mask_give_kernel(t, false);
    return (flags & CLONE_VM) || stack ? ACTION_DIRECT : fork_here(t, r);
}

/* The new program inherits the signal mask and pending signals: leave none of the runtime's. */
long exec_call(struct thread *t, struct user_registers *r)
{
    (void)r;
    t->clone_state = CLONE_COPIED; /* if the call fails, as after a clone */
    cpu_set_free(t);
    slot_release(t);
    mask_give_kernel(t, true);
    preempt_discard_pending(t->home, t->tid);
    actions_before_exec();
    return ACTION_CALL;
}
