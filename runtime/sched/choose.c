/* SPDX-License-Identifier: MIT
 *
 * Choose the CPUs of a process that has fewer slots than CPUs: those where the kernel runs its
 * threads, since it has found room there.
 */
#include "prim/prim.h"
#include "prim/task.h"
#include "sched/bind.h"
#include "sched/thread.h"

#include <string.h>

static bool take(struct cpu_mask *left, long cpu)
{
    if (cpu < 0 || cpu >= CPU_MASK_WORDS * 64 || !(left->word[cpu / 64] >> (cpu % 64) & 1))
        return false;
    left->word[cpu / 64] &= ~(1ull << (cpu % 64));
    return true;
}

void cpus_choose(const struct cpu_mask *from, uint32_t n, uint16_t *cpu)
{
    enum { NONE = 0xffff };
    static struct cpu_mask left;
    long last = prim_cpu();
    left = *from;
    for (uint32_t i = 0; i < n; i++) {
        const struct slot *s = &sched.slot[i];
        const struct thread *t = __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_IDLE
                                     ? NULL
                                     : __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
        struct task_stat stat = {.cpu = -1};
        if (t)
            task_stat(t->carrier->tid, &stat);
        long where = stat.cpu;
        cpu[i] = take(&left, where) ? (uint16_t)where : NONE;
        last = cpu[i] == NONE ? last : where;
    }
    /* Other slots get CPUs nearby: those with close numbers share caches. */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t tries = 0; cpu[i] == NONE && tries < from->bytes * 8;
             tries++, last = (last + 1) % (from->bytes * 8))
            if (take(&left, last))
                cpu[i] = (uint16_t)last;
}
