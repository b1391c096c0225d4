/* SPDX-License-Identifier: MIT */
#include "sched/user.h"

#include <signal.h>

#define FAULTS (1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1))

static uint64_t unblock(void)
{
    const uint64_t faults = FAULTS;
    uint64_t mask;
    prim_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, &mask, 8);
    return mask;
}

static void restore(uint64_t mask) { prim_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8); }

long user_copy_unblocked(void *to, const void *from, size_t bytes)
{
    uint64_t mask = unblock();
    long result = lissom_guarded_copy(to, from, bytes);
    restore(mask);
    return result;
}

long user_exchange_unblocked(uint32_t *word, uint32_t *expected, uint32_t new)
{
    uint64_t mask = unblock();
    long result = lissom_guarded_exchange(word, expected, new);
    restore(mask);
    return result;
}
