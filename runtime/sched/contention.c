/* SPDX-License-Identifier: MIT */
#include "sched/contention.h"
#include "cpus/others.h"
#include "prim/task.h"
#include "sched/hooks.h"
#include "sched/thread.h"

enum {
    STOOD_STILL_US = 200, /* a step of a poll takes less than 1 us, an interrupt tens */
    /* under a quota, longer stops are caused by it: no other thread runs for so long at a time */
    THROTTLED_US = 5000,
    /* waking an idle CPU takes 5 to 50 us, in a virtual machine up to 200 */
    WOKE_LATE_US = 500,
    /* time after a slot got a second thread during which a late wake-up proves nothing */
    OURS_US = 20000,
    AVOID_US = 50000, /* how long not to poll after the first sight of others */
    DOUBT_US = 2000,  /* how long if that sight is doubtful */
    /* limit of that time, which doubles while others are still there: it is also how late their end
     * is noticed */
    AVOID_MAX_US = 1000000,
    CALM_US = 100000, /* polling that long without a sight of others: they had left */
};

/* Guesses on which no two threads need to agree: written by any thread that has news, read by
 * all. */
static uint64_t avoid_until; /* tsc */
static uint64_t avoid_for;
static uint64_t ours_until; /* tsc */

enum { CPUS = 4096 };              /* as many as prim_cpu distinguishes */
static uint16_t slot_on_cpu[CPUS]; /* last slot seen on each CPU */

static uint64_t get(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static void set(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

bool contended(uint64_t now) { return now < get(&avoid_until); }

static bool bounded;

void contention_bounded(bool is_bounded) { bounded = is_bounded; }

bool kernel_decides(uint64_t now) { return !bounded && contended(now); }

static bool quota;

void contention_by_quota(bool is_limit) { quota = is_limit; }

static bool is_throttled(uint64_t time) { return quota && time > THROTTLED_US * sched.tsc_per_us; }

static void seen(uint64_t now, uint64_t first_us)
{
    uint64_t us = sched.tsc_per_us, until = get(&avoid_until), span = get(&avoid_for);
    if (now >= until) {
        span = now > until + CALM_US * us ? 0 : span * 2;
        if (span < first_us * us)
            span = first_us * us;
        if (span > AVOID_MAX_US * us)
            span = AVOID_MAX_US * us;
        set(&avoid_for, span);
        count(contentions);
    }
    set(&avoid_until, now + span);
}

/* --- was it the host, or did others run? ------------------------------------------------------ */

#define GUESS (1u << 31)

enum {
    ASKED = 64,
    GUESSES_US = 10000, /* minimum time between two guesses: each costs the monitor some 20 us */
};

static bool can_ask;
/* Kernel thread << 32 | us that it did not run, with GUESS if it may have computed; 0: none. Only
 * the last suspicion is kept. */
static uint64_t suspicion;
/* Run delay of kernel threads, as last read: the time for which they were ready and did not run.
 * The first value covers the thread's whole life, and is doubtful: a new thread waits for its
 * creator to leave the CPU. */
static struct {
    int32_t tid;
    uint64_t delay;
} asked[ASKED];

void contention_can_ask(bool can) { __atomic_store_n(&can_ask, can, __ATOMIC_RELAXED); }

void contention_ask(void)
{
    uint64_t what = __atomic_exchange_n(&suspicion, 0, __ATOMIC_RELAXED), ran, delay;
    int32_t tid = (int32_t)(what >> 32), i = tid % ASKED;
    uint32_t us = (uint32_t)what & ~GUESS;
    bool guess = what & GUESS;
    if (!what)
        return;
    if (!task_times(tid, &ran, &delay)) { /* it has ended */
        if (!guess)
            seen(tsc(), DOUBT_US);
        return;
    }
    bool known = asked[i].tid == tid;
    uint64_t before = known ? asked[i].delay : 0;
    asked[i].tid = tid;
    asked[i].delay = delay;
    if ((known || !guess) && delay - before >= us * 1000ull / 2 && others_ran())
        seen(tsc(), known ? AVOID_US : DOUBT_US);
}

/* Ask the monitor about the calling kernel thread, which did not run for `time` until now. */
static void ask(uint64_t time, uint32_t guess)
{
    uint64_t us = time / sched.tsc_per_us;
    set(&suspicion, (uint64_t)prim_syscall3(SYS_gettid, 0, 0, 0) << 32 | guess |
                        (us >= GUESS ? GUESS - 1 : us));
    monitor_kick_started();
}

/* The calling kernel thread, which was ready, did not run for `time`: ask, or believe it. */
static void suspect(uint64_t now, uint64_t time)
{
    if (__atomic_load_n(&can_ask, __ATOMIC_RELAXED))
        ask(time, 0);
    else
        seen(now, DOUBT_US);
}

void contention_guess(uint64_t before, uint64_t now)
{
    static uint64_t after;
    if (now - before <= STOOD_STILL_US * sched.tsc_per_us || now < get(&after) ||
        is_throttled(now - before) || !__atomic_load_n(&can_ask, __ATOMIC_RELAXED))
        return;
    set(&after, now + GUESSES_US * sched.tsc_per_us);
    ask(now - before, GUESS);
}

bool contention_stood_still(uint64_t before, uint64_t now)
{
    if (now - before <= STOOD_STILL_US * sched.tsc_per_us)
        return false;
    if (!is_throttled(now - before))
        suspect(now, now - before);
    return true;
}

static bool is_on(const struct slot *s, uint32_t cpu)
{
    return __atomic_load_n(&s->state, __ATOMIC_RELAXED) != SLOT_IDLE &&
           __atomic_load_n(&s->cpu, __ATOMIC_RELAXED) == cpu;
}

bool contention_on_cpu(struct slot *s)
{
    uint32_t cpu = prim_cpu(), n = __atomic_load_n(&s->neighbour, __ATOMIC_RELAXED);
    if (s->cpu != cpu)
        __atomic_store_n(&s->cpu, cpu, __ATOMIC_RELAXED);
    if (is_on(&sched.slot[n], cpu) && n != s->index)
        return true;
    n = __atomic_load_n(&slot_on_cpu[cpu], __ATOMIC_RELAXED);
    if (n == s->index)
        return false;
    if (is_on(&sched.slot[n], cpu)) {
        __atomic_store_n(&s->neighbour, n, __ATOMIC_RELAXED);
        __atomic_store_n(&sched.slot[n].neighbour, s->index, __ATOMIC_RELAXED);
        return true;
    }
    __atomic_store_n(&slot_on_cpu[cpu], (uint16_t)s->index, __ATOMIC_RELAXED);
    return false;
}

void contention_woke(const struct thread *t)
{
    uint64_t now = tsc();
    bool behind_own = contention_on_cpu(t->slot);
    uint64_t late = now - t->mounted_at;
    if (!behind_own && late > WOKE_LATE_US * sched.tsc_per_us && now > get(&ours_until) &&
        !is_throttled(late))
        suspect(now, late);
}

void contention_of_our_own(void) { set(&ours_until, tsc() + OURS_US * sched.tsc_per_us); }

void contention_of_others(uint64_t now) { seen(now, AVOID_US); }
