/* SPDX-License-Identifier: MIT
 *
 * Which CPUs a process keeps to that has fewer slots than CPUs: those where the kernel has put its threads, for it knew where there was room.
 */
#include "cpus/cpus.h"
#include "prim/prim.h"
#include "prim/text.h"
#include "sched/thread.h"

#include <fcntl.h>
#include <string.h>

enum { FIELDS_BEFORE_CPU = 36 }; /* of proc(5), stat: from `state`, the first after the name, to `processor` */

/* -1: not known. */
static long last_cpu(int32_t tid)
{
    char path[40] = "/proc/self/task/", text[512], *p = path + 16;
    int32_t unit = 1;
    while (tid / unit > 9)
        unit *= 10;
    for (; unit; unit /= 10)
        *p++ = (char)('0' + tid / unit % 10);
    memcpy(p, "/stat", 6);
    long fd = prim_syscall3(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    long bytes = prim_syscall3(SYS_read, fd, text, sizeof text - 1);
    prim_syscall3(SYS_close, fd, 0, 0);
    if (bytes <= 0)
        return -1;
    text[bytes] = 0;
    char *after = text;
    for (char *c = text; *c; c++)
        if (*c == ')') /* the name may hold some */
            after = c;
    int blanks = 0;
    for (p = after; *p && blanks <= FIELDS_BEFORE_CPU; p++)
        blanks += *p == ' ';
    long cpu = 0;
    if (!is_digit(*p))
        return -1;
    for (; is_digit(*p); p++)
        cpu = cpu * 10 + (*p - '0');
    return cpu;
}

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
        const struct thread *t = __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_IDLE ? NULL : __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
        long where = t ? last_cpu(t->carrier->tid) : -1;
        cpu[i] = take(&left, where) ? (uint16_t)where : NONE;
        last = cpu[i] == NONE ? last : where;
    }
    /* The others in the neighbourhood: caches are shared by those of near numbers. */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t tries = 0; cpu[i] == NONE && tries < from->bytes * 8; tries++, last = (last + 1) % (from->bytes * 8))
            if (take(&left, last))
                cpu[i] = (uint16_t)last;
}
