/* SPDX-License-Identifier: MIT */
#include "cpus/cpus.h"
#include "abi.h"
#include "prim/prim.h"

uint32_t cpus_allowed(void)
{
    uint64_t mask[128] = {0}; /* 8192 CPUs, the largest that a kernel can be built for */
    long bytes = prim_syscall3(SYS_sched_getaffinity, 0, sizeof mask, mask);
    uint32_t n = 0;
    for (long i = 0; i < bytes / 8; i++)
        n += (uint32_t)__builtin_popcountll(mask[i]);
    return n < 1 ? 1 : n > LISSOM_MAX_SLOTS ? LISSOM_MAX_SLOTS : n;
}
