/* SPDX-License-Identifier: GPL-2.0 */
/* The two queues of each CPU. RUN holds the threads that want to run, in the order of their virtual
 * time. SPIN holds the threads that were found busy-waiting, or that yielded. */
#pragma once

#include "scx_state.bpf.h"
#include "scx_tunables.bpf.h"

#define RUN(cpu) ((u64)(cpu))
#define SPIN(cpu) ((u64)(cpu) | 0x10000)

/* Return whether p may run on cpu. It may not for a moment while its affinity changes: the kernel
 * then moves it. */
static bool may_run(struct task_struct *p, s32 cpu)
{
    return bpf_cpumask_test_cpu(cpu, scx(p)->cpus_ptr);
}

static bool is_before(u64 a, u64 b) { return (s64)(a - b) < 0; }

/* A bit for each CPU in whose RUN or SPIN threads may wait. So an idle CPU asks no others: to find
 * a queue by its number is a search. Set by a CPU that inserts, cleared by a CPU that finds both
 * empty. The kernel inserts only after lissom_enqueue has returned, so a bit may be cleared just
 * before. The next tick of that CPU sets it again. */
enum { WORDS = MAX_CPUS / 64 };
volatile u64 waiting[WORDS];

static void note_waiting(s32 cpu)
{
    volatile u64 *word = &waiting[(u32)cpu / 64 % WORDS];
    u64 bit = 1ULL << ((u32)cpu % 64);
    /* All CPUs write this line: reading is cheaper. */
    if (!(*word & bit))
        __sync_fetch_and_or(word, bit);
}

static void note_empty(s32 cpu)
{
    volatile u64 *word = &waiting[(u32)cpu / 64 % WORDS];
    u64 bit = 1ULL << ((u32)cpu % 64);
    if (*word & bit)
        __sync_fetch_and_and(word, ~bit);
}

/* Enqueue p in RUN, by virtual time. Pre: cpu is the thread's. */
static void queue_up(struct task_struct *p, struct thread *t, s32 cpu, u64 flags)
{
    t->queued = scx_bpf_now();
    insert_at(p, RUN(cpu), slice_ns, t->vtime, flags);
    note_waiting(cpu);
}

/* Enqueue p in SPIN. All its threads run once before one runs again (a pass), and first the one
 * that made progress longest ago. So threads that pass on work run in the order in which they need
 * it, whatever order they came in. */
static void put_aside(struct task_struct *p, struct thread *t, struct cpu *c, s32 cpu, u64 flags)
{
    t->aside = false;
    c->aside = true;
    if (t->looked.is_new) {
        t->looked.is_new = false;
        t->progress = ++c->events;
    }
    t->queued = scx_bpf_now();
    t->turn = c->runs + scx_bpf_dsq_nr_queued(RUN(cpu));
    insert_at(p, SPIN(cpu), slice_ns, (u64)(c->pass + 1) << 32 | t->progress, flags);
    note_waiting(cpu);
}

/* Run the first of SPIN, if all threads that it had to wait for have run, or no other thread is
 * left. */
static bool take_aside(s32 cpu, struct cpu *c, bool is_alone)
{
    struct bpf_iter_scx_dsq it;
    u64 at = 0;
    bool is_due = false, found = false;
    if (!bpf_iter_scx_dsq_new(&it, SPIN(cpu), 0)) {
        struct task_struct *p = bpf_iter_scx_dsq_next(&it);
        struct thread *t = p ? thread_of(p) : NULL;
        if (t) {
            found = true;
            is_due = is_alone || !is_before(c->runs, t->turn);
            at = scx(p)->scx.dsq_vtime;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    if (!found)
        c->aside = false;
    if (!is_due || !take(SPIN(cpu)))
        return false;
    c->pass = at >> 32;
    return true;
}

/* Run the first thread of the queue that has waited for too long. Returns false if there is
 * none. */
static bool run_late(s32 cpu, u64 queue, u64 now)
{
    struct bpf_iter_scx_dsq it;
    bool done = false;
    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        u32 i;
        bpf_for(i, 0, 1 << 20) {
            struct task_struct *p = bpf_iter_scx_dsq_next(&it);
            if (!p)
                break;
            struct thread *t = thread_of(p);
            if (!t || now - t->queued < starvation_ns || !may_run(p, cpu))
                continue;
            done = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
            break;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return done;
}

static bool care(s32 cpu, struct cpu *c)
{
    u64 now = scx_bpf_now();
    if (now - c->cared < starvation_check_ns)
        return false;
    c->cared = now;
    return run_late(cpu, RUN(cpu), now) || run_late(cpu, SPIN(cpu), now);
}
