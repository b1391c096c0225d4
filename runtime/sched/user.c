/* SPDX-License-Identifier: MIT */
#include "sched/user.h"
#include "sched/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/uio.h>

#define FAULTS (1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1))

static uint64_t unblock(void)
{
    const uint64_t faults = FAULTS;
    uint64_t mask;
    prim_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, &mask, 8);
    return mask;
}

/* Let the kernel copy, so that nothing has to be unblocked: a signal of the program might be
 * pending. Where that is forbidden, unblock the faults. */
long user_copy_unblocked(void *to, const void *from, size_t bytes)
{
    struct iovec into = {to, bytes}, of = {(void *)from, bytes};
    long n = prim_syscall6(SYS_process_vm_readv, sched.pid, (long)&into, 1, (long)&of, 1, 0);
    if (n >= 0 || n == -EFAULT)
        return n == (long)bytes ? 0 : -EFAULT;
    uint64_t mask = unblock();
    long result = lissom_guarded_copy(to, from, bytes);
    signals_set_mask(mask);
    return result;
}
