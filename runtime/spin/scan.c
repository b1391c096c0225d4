/* SPDX-License-Identifier: MIT
 *
 * Scan a running thread for busy-waiting. The monitor has found that a slot does not schedule while
 * threads are ready (monitor/scan.c), and has sent its thread a signal. The handler interprets the
 * thread's registers, and parks the thread if it waits.
 */
#include "spin/spin.h"
#include "prim/clock.h"
#include "sched/slices.h"
#include "sched/thread.h"
#include "spin/probe.h"
#include "spin/site.h"

#include <time.h>

enum {
    PERIOD_MIN_US = 100,
    /* a slice: the monitor then scans anyway. More scans cost 1 % where threads hardly compute. */
    PERIOD_MAX_US = 3000,
    OBSERVE_US = 1000,
    /* scans that find no wait take at most 1/COST_SHARE of the CPU time */
    COST_SHARE = 200,
    SIGNAL_US = 10, /* cost of a scan besides the interpretation */
};
static uint32_t period_us = PERIOD_MAX_US;

/* Returns the ticks until the next scan, after one that found no wait and took `us` of CPU time. */
static uint64_t pause_after(uint64_t us)
{
    return COST_SHARE * us * __atomic_load_n(&sched.crowd, __ATOMIC_RELAXED) * sched.tsc_per_us;
}

static void next_sample(struct slot *s, uint64_t when)
{
    __atomic_store_n(&s->scan_after, when, __ATOMIC_RELAXED);
}

bool spin_may_scan(struct slot *s, uint64_t now)
{
    const struct thread *t = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    /* A thread that waited at its last scan probably does so again. The cost of scans of computing
     * threads on its slot does not matter. */
    bool likely = t && __atomic_load_n(&t->scan_waited, __ATOMIC_RELAXED);
    if (!sched.detect_spinning ||
        (!likely && now < __atomic_load_n(&s->scan_after, __ATOMIC_RELAXED)))
        return false;
    /* also if the signal has no effect */
    next_sample(s, now + pause_after(SIGNAL_US));
    return true;
}

uint32_t spin_period_us(void)
{
    if (sched.observe_spinning)
        return sched.observe_us ? sched.observe_us : OBSERVE_US;
    uint32_t us = __atomic_load_n(&period_us, __ATOMIC_RELAXED);
    return us < PERIOD_MIN_US ? PERIOD_MIN_US : us > PERIOD_MAX_US ? PERIOD_MAX_US : us;
}

/* CPU time of the calling thread: other programs may interrupt a scan for a slice. */
static uint64_t cpu_us(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000; }

/* Set the time of the next scan of s, and the period. waits: the scan found a wait. took: us of CPU
 * time. */
static void adapt(struct slot *s, bool waits, uint64_t took)
{
    uint32_t us = spin_period_us();
    uint64_t now = tsc();
    next_sample(s, waits ? now : now + pause_after(took + SIGNAL_US));
    if (waits ? us > PERIOD_MIN_US : us < PERIOD_MAX_US)
        __atomic_store_n(&period_us, waits ? us / 2 : us * 2, __ATOMIC_RELAXED);
}

/* Park t as if it were proven to wait for a word that nobody changes. */
static void misjudge(struct thread *t)
{
    static const uint32_t never = 1;
    t->wait_word[0] = (struct wait_word){(uintptr_t)&never, never, ~0u};
    t->wait_words = 1;
    t->wait_counted = false;
    slot_park(t, tsc());
}

/* Returns whether to make a site in the loop. A counted loop without pauses that reads no word of
 * others gets none: it may be the work itself. */
static bool may_have_site(const struct spin_result *r)
{
    if (r->verdict != SPIN_COUNTED)
        return r->verdict == SPIN_ENDLESS || (r->pause && r->loop == r->pause);
    bool reads = r->pause;
    for (uint32_t i = 0; i < r->loads; i++)
        reads |= !r->load[i].stack;
    return reads;
}

bool spin_scanned(struct thread *t, const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    const struct spin_registers from = {
        .r = {(uint64_t)g[REG_RAX], (uint64_t)g[REG_RCX], (uint64_t)g[REG_RDX],
              (uint64_t)g[REG_RBX], (uint64_t)g[REG_RSP], (uint64_t)g[REG_RBP],
              (uint64_t)g[REG_RSI], (uint64_t)g[REG_RDI], (uint64_t)g[REG_R8], (uint64_t)g[REG_R9],
              (uint64_t)g[REG_R10], (uint64_t)g[REG_R11], (uint64_t)g[REG_R12],
              (uint64_t)g[REG_R13], (uint64_t)g[REG_R14], (uint64_t)g[REG_R15]},
        .rip = (uint64_t)g[REG_RIP],
        .flags = (uint64_t)g[REG_EFL],
        .xmm = uc->uc_mcontext.fpregs ? uc->uc_mcontext.fpregs->_xmm : NULL,
    };
    struct spin_result r;
    /* At a site's stub, the thread is interpreted by the site's code (hit.c). */
    if (spin_site_at((uintptr_t)from.rip))
        return false;
    uint64_t began = cpu_us();
    if (!spin_probe(t, &from, NULL, &r))
        return false;
    count(spin_scans);
    bool waits = spin_is_wait(&r);
    __atomic_store_n(&t->scan_waited, waits, __ATOMIC_RELAXED);
    t->scan_works = !waits && r.lines >= SPIN_WORK_LINES;
    if (waits) {
        count(spin_waits);
        slices_begin_anew(t, t->slot);
    } else if (!t->scan_works) {
        slices_shorten(t, t->slot);
    }
    adapt(t->slot, waits, cpu_us() - began);
    if (waits && r.head)
        spin_site_ask(&r, may_have_site(&r) && !sched.observe_spinning);
    if (sched.observe_spinning)
        return true;
    if (sched.misjudge_spinning && !waits) {
        misjudge(t);
        return true;
    }
    if (!waits)
        return true;
    if (r.transient)
        return true; /* others see stores that it will undo: it parks at its site */
    if (r.verdict == SPIN_COUNTED && t->counts_on) {
        t->counts_on = 0; /* without a site, iterations are not counted: until the next scan */
        return true;
    }
    spin_remember(t, &r);
    if (t->wait_words)
        slot_park(t, tsc());
    else
        slot_yield(t);
    return true;
}
