/* SPDX-License-Identifier: MIT
 *
 * A hand-off between kernel threads wakes the next and then sleeps.  While both are runnable the kernel looks for a
 * better CPU for the one that it wakes: it lands behind another slot's thread, that CPU's own goes somewhere else, and
 * in a virtual machine each such move costs the wake-up of an idle CPU (measured, 32 threads at a barrier on 2 CPUs: 257
 * us a round, 160 with what follows; a condition variable: 376 and 163).  No futex operation tells the kernel that the
 * waker is about to sleep.  So a pinned thread is bound to the CPU of its slot before it is granted it.
 *
 * The invariant: a thread that runs is bound to the CPU of its slot or to none.  What a program could see of it:
 *
 * - sched_getaffinity is answered with the mask of the process (syscalls.c);
 * - children inherit a mask, so a thread is unbound before clone, fork, vfork and execve;
 * - a thread whose mask is not the process's, because the program set it, is never bound;
 * - /proc/PID/task/TID/status and other processes do see it.
 *
 * Only while there are more threads than slots. With a slot for every CPU each slot has its own; with fewer, slots float: who hands its slot
 * to another binds it to the CPU where both are at the moment, and who gets an idle slot is not bound, so that the kernel finds it a place.
 */
#include "cpus/cpus.h"
#include "prim/prim.h"
#include "sched/contention.h"
#include "sched/thread.h"

#include <string.h>

static struct cpu_mask process_mask;
static uint16_t cpu_of_slot[LISSOM_MAX_SLOTS];
static uint32_t cpus_in_mask; /* entries of cpu_of_slot that hold; a slot beyond is one that is being closed */
static enum binding binding;
static struct lock setting; /* the program's setting and ours: the program's is the last */

void cpus_own_mask(struct cpu_mask *m)
{
    memset(m, 0, sizeof *m);
    long bytes = prim_syscall3(SYS_sched_getaffinity, 0, sizeof m->word, m->word);
    m->bytes = bytes > 0 ? (uint32_t)bytes : 0;
}

/* What unbound threads get. */
static struct cpu_mask wide;

bool cpus_is_mask(const struct cpu_mask *m)
{
    return m->bytes == process_mask.bytes && !memcmp(m->word, process_mask.word, sizeof m->word);
}

static void release(struct thread *t)
{
    if (!t->was_bound || t->own_affinity)
        return;
    t->bound = 0;
    prim_syscall3(SYS_sched_setaffinity, t->tid, wide.bytes, wide.word);
}

void cpus_mask_is(const struct cpu_mask *m, bool is_all)
{
    uint32_t n = 0;
    lock_take(&setting);
    process_mask = wide = *m;
    if (is_all)
        memset(wide.word, 0xff, m->bytes);
    for (uint32_t i = 0; i < m->bytes * 8; i++)
        if (m->word[i / 64] >> (i % 64) & 1 && n < LISSOM_MAX_SLOTS)
            cpu_of_slot[n++] = (uint16_t)i;
    cpus_in_mask = n;
    threads_each(release);
    lock_drop(&setting);
}

void cpus_unbind_self(void)
{
    struct cpu_mask m;
    cpus_own_mask(&m);
    if (!cpus_is_mask(&m))
        prim_syscall3(SYS_sched_setaffinity, 0, wide.bytes, wide.word);
}

void cpus_may_bind(enum binding how) { binding = process_mask.bytes > 0 ? how : BIND_NOT; }

/* Of slot s, -1: none. By who grants it. */
static long cpu_of(const struct slot *s)
{
    if (binding == BIND_TO_ITS_OWN)
        return s->index < cpus_in_mask ? cpu_of_slot[s->index] : -1;
    uint32_t here = prim_cpu();
    bool is_here = binding == BIND_WHERE_IT_IS && __atomic_load_n(&s->cpu, __ATOMIC_RELAXED) == here && !contention_shares_cpu(s);
    return is_here && here < CPU_MASK_WORDS * 64 && process_mask.word[here / 64] >> (here % 64) & 1 ? (long)here : -1;
}

void cpu_look_at_affinity(struct thread *t)
{
    struct cpu_mask m;
    cpus_own_mask(&m);
    t->own_affinity = memcmp(m.word, process_mask.word, sizeof m.word) != 0;
}

bool cpu_bind(struct thread *t, const struct slot *s)
{
    long cpu = contended(tsc()) ? -1 : cpu_of(s);
    if (cpu < 0) {
        cpu_unbind(t);
        return false;
    }
    if (t->bound == cpu + 1)
        return true;
    if (t->own_affinity || !t->pinned || !threads_exceed_slots()) {
        cpu_unbind(t);
        return false;
    }
    uint64_t word[CPU_MASK_WORDS] = {0};
    word[cpu / 64] = 1ull << (cpu % 64);
    lock_take(&setting);
    if (!t->own_affinity && prim_syscall3(SYS_sched_setaffinity, t->tid, (cpu / 64 + 1) * 8, word) == 0)
        t->bound = (uint16_t)(cpu + 1);
    t->was_bound = true;
    lock_drop(&setting);
    return t->bound == cpu + 1;
}

bool cpu_is_bound_elsewhere(const struct thread *t, const struct slot *s)
{
    if (!t->bound)
        return false;
    if (binding == BIND_TO_ITS_OWN)
        return s->index >= cpus_in_mask || t->bound != cpu_of_slot[s->index] + 1;
    return t->bound != __atomic_load_n(&s->cpu, __ATOMIC_RELAXED) + 1;
}

void cpu_unbind(struct thread *t)
{
    if (!t->bound)
        return;
    lock_take(&setting);
    t->bound = 0;
    if (!t->own_affinity)
        prim_syscall3(SYS_sched_setaffinity, t->tid, wide.bytes, wide.word);
    lock_drop(&setting);
}

long cpu_set_by_program(struct thread *t, uint64_t bytes, const void *mask)
{
    lock_take(&setting);
    long r = prim_syscall3(SYS_sched_setaffinity, t->tid, bytes, mask);
    if (r >= 0) {
        t->own_affinity = true;
        t->bound = 0;
    }
    lock_drop(&setting);
    return r;
}

void cpus_after_fork(void) { setting.word = 0; }

const struct cpu_mask *cpus_of_process(void) { return &process_mask; }
