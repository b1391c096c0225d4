/* SPDX-License-Identifier: GPL-2.0 */
/* The two queues of each CPU. RUN holds the threads that want to run, in the order of their virtual
 * time. SPIN holds the threads that were found busy-waiting, or that yielded.
 *
 * All threads of SPIN run once before one of them runs again (a pass), and first the one that made
 * progress longest ago. So threads that pass on work run in the order in which they need it,
 * whatever order they came in. */
#pragma once

#include "scx_state.bpf.h"
#include "scx_tunables.bpf.h"

enum { SPIN_DSQ = 1 << 16 };

static u64 run_dsq(s32 cpu) { return (u32)cpu; }
static u64 spin_dsq(s32 cpu) { return (u32)cpu | SPIN_DSQ; }

/* Return whether p may run on cpu. It may not for a moment while its affinity changes: the kernel
 * then moves it. */
static bool may_run(struct task_struct *p, s32 cpu)
{
    return bpf_cpumask_test_cpu(cpu, scx(p)->cpus_ptr);
}

static bool is_before(u64 a, u64 b) { return (s64)(a - b) < 0; }

/* Return whether threads wait for this CPU, behind the running one. */
static bool is_wanted(s32 cpu, const struct cpu_ctx *c)
{
    return c->has_spinning || scx_bpf_dsq_nr_queued(run_dsq(cpu)) > 0;
}

/* A bit for each CPU in whose RUN or SPIN threads may wait. So an idle CPU asks no others: to find
 * a queue by its number is a search. Set by a CPU that inserts, cleared by a CPU that finds both
 * empty. The kernel inserts only after lissom_enqueue has returned, so a bit may be cleared just
 * before. The next tick of that CPU sets it again. */
enum { WORDS = MAX_CPUS / 64 };
volatile u64 queued_mask[WORDS];

static void mark_queued(s32 cpu)
{
    volatile u64 *word = &queued_mask[(u32)cpu / 64 % WORDS];
    u64 bit = 1ULL << ((u32)cpu % 64);
    /* All CPUs write this line: reading is cheaper. */
    if (!(*word & bit))
        __sync_fetch_and_or(word, bit);
}

static void mark_empty(s32 cpu)
{
    volatile u64 *word = &queued_mask[(u32)cpu / 64 % WORDS];
    u64 bit = 1ULL << ((u32)cpu % 64);
    if (*word & bit)
        __sync_fetch_and_and(word, ~bit);
}

/* Enqueue p in RUN. Pre: cpu is the thread's. */
static void enqueue_run(struct task_struct *p, struct task_ctx *t, s32 cpu, u64 enq_flags)
{
    t->queued = scx_bpf_now();
    scx_bpf_dsq_insert_vtime(p, run_dsq(cpu), slice_ns, t->vtime, enq_flags);
    mark_queued(cpu);
}

/* Enqueue p in SPIN. Pre: cpu is the thread's. */
static void enqueue_spin(struct task_struct *p, struct task_ctx *t, struct cpu_ctx *c, s32 cpu,
                         u64 enq_flags)
{
    t->is_spinning = false;
    c->has_spinning = true;
    if (t->scan.is_new) {
        t->scan.is_new = false;
        t->progress = ++c->events;
    }
    t->queued = scx_bpf_now();
    t->turn = c->runs + scx_bpf_dsq_nr_queued(run_dsq(cpu));
    scx_bpf_dsq_insert_vtime(p, spin_dsq(cpu), slice_ns, (u64)(c->pass + 1) << 32 | t->progress,
                             enq_flags);
    mark_queued(cpu);
}

/* Run the first thread of SPIN, if all threads that it had to wait for have run, or if is_alone: no
 * other thread is left. Returns false if none runs. */
static bool dispatch_spin(s32 cpu, struct cpu_ctx *c, bool is_alone)
{
    struct task_struct *p;
    u64 vtime = 0;
    bool is_due = false, found = false;

    bpf_for_each(scx_dsq, p, spin_dsq(cpu), 0) {
        struct task_ctx *t = try_lookup_task_ctx(p);
        if (t) {
            found = true;
            is_due = is_alone || !is_before(c->runs, t->turn);
            vtime = scx(p)->scx.dsq_vtime;
        }
        break;
    }
    if (!found)
        c->has_spinning = false;
    if (!is_due || !scx_bpf_dsq_move_to_local(spin_dsq(cpu)))
        return false;
    c->pass = vtime >> 32;
    return true;
}

/* Run the first thread of the queue that has waited for too long. Returns false if there is
 * none. */
static bool move_starved(s32 cpu, u64 queue, u64 now)
{
    struct task_struct *p;

    bpf_for_each(scx_dsq, p, queue, 0) {
        struct task_ctx *t = try_lookup_task_ctx(p);
        if (t && now - t->queued >= starvation_ns && may_run(p, cpu))
            return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
    }
    return false;
}

/* Run a thread that has waited for too long, if it is time to search for one. */
static bool dispatch_starved(s32 cpu, struct cpu_ctx *c)
{
    u64 now = scx_bpf_now();
    if (now - c->starvation_checked < starvation_check_ns)
        return false;
    c->starvation_checked = now;
    return move_starved(cpu, run_dsq(cpu), now) || move_starved(cpu, spin_dsq(cpu), now);
}

/* Let the kernel move the threads of a queue whose CPU goes offline. Those that may run on no other
 * CPU must be seen by the kernel there, which then lets them run elsewhere. Before that the CPU
 * does not go. */
static void return_tasks(s32 cpu, u64 queue)
{
    struct task_struct *p;

    bpf_for_each(scx_dsq, p, queue, 0)
        if (may_run(p, cpu))
            scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
}
