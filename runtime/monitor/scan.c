/* SPDX-License-Identifier: MIT
 *
 * A slot has not scheduled for a slice, although threads are ready. Its thread computes, and is
 * preempted; or it is blocked in the kernel, and the next thread runs beside it. The CPU time of
 * the kernel thread shows which of the two holds.
 *
 * While a debugger is attached no thread is preempted: gdb reports a breakpoint twice if a signal
 * comes while it steps a thread over it. The next thread then runs beside the one that computes, as
 * natively.
 */
#include "monitor/scan.h"
#include "prim/clock.h"
#include "prim/task.h"
#include "sched/contention.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "spin/spin.h"

#include <time.h>

enum {
    LOOKS = 64, /* threads of one slot to check at most: 0.3 us each */
    /* preemptions of a thread before another one gets the slot beside it */
    PREEMPTIONS = 4,
};

void scan_runner(const struct slot *s) { slices_on_runners(s, signals_scan); }

/* Returns the CPU time of a kernel thread in ns; 0: unknown. */
static uint64_t cpu_time_of(int32_t tid) { return tid ? clock_ns(clock_of_thread(tid)) : 0; }

/* Returns whether `ns` is at least an eighth of the time from `since` to `now` (tsc). */
static bool is_much(uint64_t ns, uint64_t since, uint64_t now)
{
    return ns >= (now - since) / sched.tsc_per_us * 1000 / 8;
}

enum use { COMPUTES, BLOCKED, ANOTHER };

/* Returns how the kernel thread that runs s has spent its time since the last scan; ANOTHER if a
 * different one ran s then. A guess. */
static enum use use_of(struct slot *s, uint64_t now)
{
    const struct thread *t = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    int32_t tid = t ? t->carrier->tid : 0;
    uint64_t cpu_time = cpu_time_of(tid);
    enum use use = tid != s->monitor_tid                                             ? ANOTHER
                   : is_much(cpu_time - s->monitor_cpu_time, s->monitor_looked, now) ? COMPUTES
                                                                                     : BLOCKED;
    s->monitor_tid = tid;
    s->monitor_cpu_time = cpu_time;
    s->monitor_looked = now;
    return use;
}

/* Threads that run on the scanned slot: how many compute, and which has run longest. */
static struct {
    uint64_t now;
    uint32_t looks, computing;
    struct thread *longest;
} several;

static void look_at_one_of_several(struct thread *t)
{
    if (several.looks++ >= LOOKS)
        return;
    uint64_t cpu_time = cpu_time_of(t->carrier->tid);
    /* The last check must be recent: then the thread probably had the slot, and the same kernel
     * thread. */
    bool is_recent = several.now - t->monitor_looked <= 4 * SLICE_US * sched.tsc_per_us;
    if (is_recent && is_much(cpu_time - t->monitor_cpu_time, t->monitor_looked, several.now)) {
        several.computing++;
        if (!several.longest || t->mounted_at < several.longest->mounted_at)
            several.longest = t;
    }
    t->monitor_cpu_time = cpu_time;
    t->monitor_looked = several.now;
}

/* Extra runners are on s because a thread was blocked, or blocked the preemption signal. If several
 * compute, send one back to the run queue: otherwise all threads that compute would run in the
 * end, however few slots there are. */
static void end_overcommit(const struct slot *s, uint64_t now)
{
    several.now = now;
    several.looks = several.computing = 0;
    several.longest = NULL;
    threads_on_slot(s, look_at_one_of_several);
    if (several.computing >= 2)
        signals_step_back(several.longest);
}

/* Returns whether the kernel thread waits for a CPU beside other programs, and is not blocked. */
static bool waits_for_cpu(int32_t tid)
{
    struct task_stat stat;
    return tid && !giving_up() && task_stat(tid, &stat) && stat.state == 'R';
}

/* Returns the slice of the thread that runs on s, in tsc ticks; 0: no thread. A guess. */
static uint64_t slice_on(const struct slot *s)
{
    const struct thread *t = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    return t ? slice_of(t) : 0;
}

/* The slice is not over: scans the thread for busy-waiting, or lets a woken thread preempt it. */
static void look_within_slice(struct slot *s, uint64_t now)
{
    if (sched.traced)
        return;
    if (spin_may_scan(s, now))
        scan_runner(s);
    else
        slices_preempt(s);
}

/* Threads are ready on s, and it has not scheduled for a slice: one that computes is
 * preempted. If it is blocked in the kernel, or blocks the preemption signal, the next one runs
 * beside it. */
static void end_slice(struct slot *s, uint64_t now, enum use use)
{
    bool computes = use == COMPUTES || waits_for_cpu(s->monitor_tid);
    if (computes && !sched.traced && now - s->monitor_stuck < slice_on(s)) {
        look_within_slice(s, now);
        return;
    }
    s->monitor_stuck = now;
    if (!sched.traced && s->monitor_preempts < PREEMPTIONS && computes) {
        s->monitor_preempts++;
        slices_on_runners(s, spin_may_scan(s, now) ? signals_scan : signals_end_slice);
    } else {
        s->monitor_preempts = 0;
        slot_overcommit(s);
    }
}

void scan_slot(struct slot *s, uint64_t now)
{
    enum use use = use_of(s, now);
    bool stuck =
        s->monitor_seen == __atomic_load_n(&s->schedules, __ATOMIC_RELAXED) && use != ANOTHER;
    if (!stuck) {
        s->monitor_stuck = now;
        s->monitor_preempts = 0;
    }
    if (__atomic_load_n(&s->overcommit, __ATOMIC_RELAXED) && !kernel_decides(now) && !sched.traced)
        end_overcommit(s, now);
    if (stuck && now - s->monitor_stuck >= SLICE_US * sched.tsc_per_us)
        end_slice(s, now, use);
    else
        look_within_slice(s, now);
}
