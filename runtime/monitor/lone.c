/* SPDX-License-Identifier: MIT */
#include "monitor/lone.h"
#include "cpus/others.h"
#include "monitor/scan.h"
#include "prim/clock.h"
#include "prim/task.h"
#include "sched/contention.h"
#include "sched/release.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "sched/thread.h"
#include "sched/turns.h"
#include "spin/spin.h"

enum {
    LOOK_US = 12000, /* us between two checks while the thread is contended */
    /* longest interval while it runs uncontended; grows by a quarter each time */
    RUNS_MAX_US = 200000,
    IDLE_MAX_US = 1600000, /* longest interval while it does not run: 5 us per check */
    DELAY_SHARE = 8,       /* contended: it waited for 1/DELAY_SHARE of the time */
    RAN_SHARE = 32,        /* contended: it also ran for 1/RAN_SHARE of the time */
    /* Further checks for which it counts as contended, doubling from HOLD_MIN to HOLD_MAX. */
    HOLD_MIN = 4,
    HOLD_MAX = 64,
    FEW = 4, /* kernel threads to check at most */

    TICK_US = 1000,     /* us between two scans while contended */
    TICK_MAX_US = 8000, /* maximum between two ticks: other threads may be ready by then */
    SCANS_A_TICK = 8,   /* scans without a wait before the scan interval doubles */
    DOUBLINGS = 5,      /* maximum number of doublings */
    JUST_SHARE = 4,     /* it has just run: for 1/JUST_SHARE of the last tick */

    CALLS = 4, /* system calls to time; the shortest counts */
};

static struct {
    uint32_t tids;        /* sum of kernel thread ids at the last check; 0: none */
    uint64_t ran, delay;  /* ns */
    uint64_t at;          /* tsc: last check */
    uint64_t waits;       /* waits found so far */
    uint32_t scans;       /* scans since the last wait was found */
    uint64_t scanned;     /* tsc: last scan */
    uint32_t period_us;   /* until the next check */
    bool ticks;           /* the thread was alone, and contended, at the last tick */
    bool held;            /* contended, by the last check or by hold */
    uint32_t holds, left; /* checks: see hold */
    bool released;
    bool watches;  /* at the last tick, one thread ran and no other could */
    bool can_look; /* has a descriptor table of its own, so it may open files */
} lone;

/* Time a system call without effect. Filters (seccomp), tracers, and the kernel's mitigations of
 * processor bugs make all calls longer. */
static void time_a_call(void)
{
    uint64_t least = UINT32_MAX;
    for (int i = 0; i < CALLS; i++) {
        uint64_t began = tsc();
        prim_syscall3(SYS_gettid, 0, 0, 0);
        uint64_t took = tsc() - began;
        least = took < least ? took : least;
    }
    __atomic_store_n(&sched.call_tsc, (uint32_t)least, __ATOMIC_RELAXED);
}

void lone_begin(bool own_descriptors)
{
    __builtin_memset(&lone, 0, sizeof lone);
    lone.period_us = LOOK_US;
    lone.can_look = own_descriptors;
    __atomic_store_n(&sched.lone_contended, false, __ATOMIC_RELAXED);
}

/* Returns the slot of the only running thread of the process; NULL: none runs, or several. *alone:
 * no other thread could run. */
static struct slot *only_busy(bool *alone)
{
    struct slot *only = NULL;
    *alone = true;
    for (uint32_t i = 0; i < sched.slots; i++) {
        struct slot *s = &sched.slot[i];
        bool busy = __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_BUSY;
        if ((only && busy) || __atomic_load_n(&s->overcommit, __ATOMIC_RELAXED))
            return NULL;
        if (slot_ready_count(s) || __atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED))
            *alone = false;
        if (busy)
            only = s;
    }
    return only;
}

/* Times of the kernel threads that run a slot: usually one. */
static struct {
    uint32_t n, tids; /* number of threads, and sum of their ids */
    uint64_t ran, delay;
} sum;

static void add_times(struct thread *t)
{
    uint64_t ran = 0, delay = 0;
    if (sum.n++ >= FEW || !task_times(t->carrier->tid, &ran, &delay))
        return;
    sum.tids += (uint32_t)t->carrier->tid;
    sum.ran += ran;
    sum.delay += delay;
}

static void add_cpu_time(struct thread *t)
{
    if (sum.n++ >= FEW)
        return;
    sum.tids += (uint32_t)t->carrier->tid;
    sum.ran += clock_ns(clock_of_thread(t->carrier->tid));
}

static void sum_up(const struct slot *s, void (*add)(struct thread *))
{
    sum.n = sum.tids = 0;
    sum.ran = sum.delay = 0;
    if (s)
        slices_on_runners(s, add);
}

/* Returns whether the thread counts as contended, from the result of a check. A thread that yields
 * or sleeps is not delayed, even if others want the CPU. So it counts as contended for some further
 * checks. Their number doubles each time that it is found contended again at once. */
static bool hold(bool contended)
{
    if (contended) {
        if (lone.released || !lone.holds)
            lone.holds = lone.holds * 2 < HOLD_MAX ? lone.holds * 2 : HOLD_MAX;
        if (lone.holds < HOLD_MIN)
            lone.holds = HOLD_MIN;
        lone.left = lone.holds;
        lone.released = false;
        return true;
    }
    if (lone.left && --lone.left)
        return true;
    if (lone.released)
        lone.holds = 0;
    lone.released = true;
    return false;
}

/* Returns whether the thread of s calls sched_yield(2) itself, to effect: it needs no help. */
static bool gives_way(const struct slot *s, uint64_t now)
{
    const struct thread *t = s ? __atomic_load_n(&s->runner, __ATOMIC_RELAXED) : NULL;
    uint64_t at = t ? __atomic_load_n(&t->gave_way_at, __ATOMIC_RELAXED) : 0;
    return at && (int64_t)(now - at) < (int64_t)(LOOK_US * sched.tsc_per_us);
}

/* Returns whether s, the slot of the only running thread, is contended. Returns the last result if
 * that is recent. */
static bool is_contended(const struct slot *s, uint64_t now)
{
    uint64_t ns = (now - lone.at) * 1000 / sched.tsc_per_us;
    if (ns < lone.period_us * 900ull) /* a timer has ended the sleep */
        return s && lone.held;
    if (!s && lone.held) { /* several threads run, or none, perhaps for a moment */
        lone.held = hold(false);
        lone.tids = 0;
        lone.at = now;
        return false;
    }
    /* A timer of the monitor has probably just woken another thread: check again at the next
     * tick. */
    if (!s && ns < lone.period_us * 4000ull)
        return false;
    time_a_call();
    sum_up(s, add_times);
    bool same = sum.tids && sum.tids == lone.tids;
    bool runs = same && sum.ran - lone.ran >= ns / RAN_SHARE;
    bool delayed = runs && sum.delay - lone.delay >= ns / DELAY_SHARE && others_ran();
    lone.held = hold(turns_passed() || (delayed && !gives_way(s, now)));
    uint32_t most = runs ? RUNS_MAX_US : IDLE_MAX_US;
    lone.period_us =
        lone.held || (sum.tids && !same) ? LOOK_US : lone.period_us + lone.period_us / 4;
    if (lone.period_us > most)
        lone.period_us = most;
    lone.tids = sum.tids;
    lone.ran = sum.ran;
    lone.delay = sum.delay;
    lone.at = now;
    return s && lone.held;
}

/* Returns the slot of the only running thread if it is contended, and no other thread is ready.
 * Contention itself does not depend on ready threads: MPI ranks with OpenMP have some at every
 * other check. */
static struct slot *contended_slot(uint64_t now)
{
    lone.watches = false;
    if (!sched.detect_spinning || !lone.can_look)
        return NULL;
    bool alone;
    struct slot *s = only_busy(&alone);
    lone.watches = s && alone;
    bool is = is_contended(s, now);
    __atomic_store_n(&sched.lone_contended, lone.held, __ATOMIC_RELAXED);
    return is && alone ? s : NULL;
}

bool lone_watches(void) { return lone.watches; }

bool lone_look(void) { return contended_slot(tsc()); }

uint32_t lone_sleep_us(void)
{
    return sched.detect_spinning && lone.can_look && !giving_up() ? lone.period_us : 0;
}

/* Returns whether the thread of s has just run. Only then can a scan show a wait: a thread that was
 * away for long finds that its wait is over. On a CPU shared with the monitor, a thread that has
 * just run has most likely run until now. */
static bool has_just_run(const struct slot *s, uint64_t now)
{
    static uint64_t ran, at;
    uint64_t ns = (now - at) * 1000 / sched.tsc_per_us, before = ran;
    sum_up(s, add_cpu_time);
    ran = sum.ran;
    at = now;
    return ran - before >= ns / JUST_SHARE;
}

/* Returns whether the kernel thread that has_just_run has checked is running. */
static bool is_running(void)
{
    struct task_stat stat;
    return sum.n == 1 && task_stat((int32_t)sum.tids, &stat) && stat.state == 'R';
}

/* Returns the us between two scans: the more scans have shown no wait, the longer. */
static uint32_t scan_period_us(void)
{
    uint32_t doublings = lone.scans / SCANS_A_TICK;
    return TICK_US << (doublings < DOUBLINGS ? doublings : DOUBLINGS);
}

bool lone_tick(uint64_t now)
{
    bool before = lone.ticks;
    struct slot *s = contended_slot(now);
    lone.ticks = s;
    if (!s) {
        if (lone.period_us > RUNS_MAX_US) /* the monitor is awake anyway */
            lone.period_us = LOOK_US;
        return false;
    }
    contention_of_others(now);
    uint64_t waits = __atomic_load_n(&record->counter[LISSOM_C_spin_waits], __ATOMIC_RELAXED);
    if (waits != lone.waits) {
        lone.waits = waits;
        lone.scans = 0;
    }
    bool due = now - lone.scanned >= scan_period_us() * sched.tsc_per_us / 2;
    /* Not at the first tick: a call that began before may block with its slot (fastpath_may_block),
     * and the signal would end it. */
    if (has_just_run(s, now) && due && before && is_running()) {
        lone.scans++;
        lone.scanned = now;
        scan_runner(s);
    }
    return true;
}

uint32_t lone_tick_us(void)
{
    uint32_t us = scan_period_us();
    if (!lone.ticks)
        return 0;
    return us < TICK_MAX_US ? us : TICK_MAX_US;
}
