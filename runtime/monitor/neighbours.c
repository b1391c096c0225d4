/* SPDX-License-Identifier: MIT */
#include "monitor/neighbours.h"
#include "cpus/others.h"
#include "monitor/lone.h"
#include "monitor/scan.h"
#include "prim/clock.h"
#include "prim/task.h"
#include "sched/contention.h"
#include "sched/release.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "spin/spin.h"

#include <time.h>

enum {
    LOOK_US = 12000,  /* us between two checks while there are neighbours */
    CALM_US = 50000,  /* longest interval without neighbours; doubles each time */
    DELAY_SHARE = 8,  /* a slot that waited for 1/DELAY_SHARE of the time has neighbours */
    LEAST_SHARE = 32, /* 1/LEAST_SHARE of the time must be known to conclude anything */
    MOST = 8,         /* slots per check */
    KNOWN = 64,       /* kernel threads remembered */
    CROWD_MAX = 16,
};

static struct {
    bool can_look, any;
    struct beside beside;
    uint64_t at;        /* tsc: last check */
    uint64_t cpu_time;  /* ns: CPU time of the process at the last check */
    uint32_t period_us; /* until the next check */
    uint32_t first;     /* next slot to check */
    bool scanned;       /* threads were to be scanned at the last tick */
} own;

static struct {
    int32_t tid;
    uint64_t ran, delay; /* ns, when last read */
} known[KNOWN];

/* Times of the kernel threads that run slots, since the last check; ns. */
static struct {
    uint64_t ran, delay;
    bool others;
} sum;

static void add(struct thread *t)
{
    int32_t tid = t->carrier->tid;
    uint32_t i = (uint32_t)tid % KNOWN;
    uint64_t ran, delay;
    if (!task_times(tid, &ran, &delay))
        return;
    if (known[i].tid == tid) {
        uint64_t r = ran - known[i].ran, d = delay - known[i].delay;
        sum.ran += r;
        sum.delay += d;
        sum.others |= d * DELAY_SHARE > r + d;
    }
    known[i].tid = tid;
    known[i].ran = ran;
    known[i].delay = delay;
}

static void add_up(uint32_t n)
{
    sum.ran = sum.delay = 0;
    sum.others = false;
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        const struct slot *s = &sched.slot[(own.first + i) % n];
        if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) != SLOT_IDLE)
            slices_on_runners(s, add);
    }
    own.first += MOST;
}

static void set_any(bool any)
{
    uint64_t crowd = any && sum.ran ? 1 + sum.delay / sum.ran : 1;
    own.any = any;
    __atomic_store_n(&sched.neighbours, any && sched.detect_spinning, __ATOMIC_RELAXED);
    __atomic_store_n(&sched.crowd, crowd < CROWD_MAX ? crowd : CROWD_MAX, __ATOMIC_RELAXED);
}

void neighbours_begin(bool own_descriptors)
{
    __builtin_memset(&own, 0, sizeof own);
    own.can_look = own_descriptors && sched.shares;
    own.period_us = LOOK_US;
    set_any(false);
}

bool neighbours_look(uint64_t now, const struct beside_share *share, bool throttled)
{
    uint64_t us = (now - own.at) / sched.tsc_per_us;
    if (!own.can_look || us < (own.any || !contended(now) ? own.period_us : LOOK_US))
        return false;
    uint32_t n = sched.slots;
    uint64_t cpu_time = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns = us * 1000;
    uint64_t used = (cpu_time - own.cpu_time) * BESIDE_CPU / ns;
    bool first = !own.at;
    add_up(n);
    uint64_t all = sum.ran + sum.delay;
    own.at = now;
    own.cpu_time = cpu_time;
    bool ran = others_ran(); /* at each check: its answer is about the time since the last one */
    set_any(ran && sum.others && !throttled);
    if (own.any)
        contention_of_others(now);
    own.period_us = own.any || own.beside.slots ? LOOK_US : own.period_us * 2;
    if (own.period_us > CALM_US)
        own.period_us = CALM_US;
    if (n > share->slots) /* each slot should have run once */
        own.period_us = LOOK_US * n / share->slots;
    if (first || throttled || (own.any && all < ns / LEAST_SHARE))
        return false;
    const struct beside_look look = {
        .now_us = now / sched.tsc_per_us,
        .slots = n,
        .others = own.any,
        .used = (uint32_t)used,
        .offered = (uint32_t)(own.any ? sum.ran * BESIDE_CPU / all : BESIDE_CPU),
        .threads = slots_demand(NULL),
    };
    if (!beside_look(&own.beside, &look, share))
        return false;
    if (neighbours_slots(share) < n)
        count(neighbour_bounds);
    return true;
}

uint32_t neighbours_slots(const struct beside_share *share)
{
    return beside_slots(&own.beside, share);
}

bool neighbours_any(void) { return own.any; }

bool neighbours_tick(uint64_t now)
{
    bool scans =
        own.any && sched.detect_spinning && !sched.traced && !giving_up() && !lone_watches();
    /* Not at the first tick: a call that began before may block with its slot (fastpath_may_block),
     * and the signal would end it. */
    for (uint32_t i = 0; scans && own.scanned && i < slots_open(); i++) {
        struct slot *s = &sched.slot[i];
        if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_BUSY && !slot_ready_count(s) &&
            !__atomic_load_n(&s->napping, __ATOMIC_RELAXED) && spin_may_scan(s, now))
            scan_runner(s);
    }
    own.scanned = scans;
    return scans;
}
