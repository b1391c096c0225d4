/* SPDX-License-Identifier: MIT
 *
 * Loops that call sched_yield(2). While others are ready, a thread in such a loop runs for a moment
 * at a time, so the monitor's scans rarely interrupt it. Its own yield is cheaper than an
 * interpretation. After a millisecond of such yields the thread is interpreted. If it waits, it is
 * parked, or naps where no other can run. Otherwise waiting threads would yield to each other at
 * full speed.
 */
#include "sched/nap.h"
#include "sched/slots.h"
#include "sched/thread.h"
#include "sched/waiting.h"
#include "spin/probe.h"
#include "spin/site.h"
#include "spin/spin.h"

enum {
    SAME_WAIT_US = 3, /* maximum between two yields of one wait */
    COLD_US = 100,    /* added after a park or nap in it: the caches are cold */
    LET_US = 1000,    /* us of yielding before a wait is interpreted */
    LAST_LOOK = 4096, /* maximum number of yields between interpretations of an unproven loop */
};

/* Stands for a site in proofs. */
static const struct spin_site yields = {.yields = true};

/* Returns a hash of the registers that probably differs between two waits. */
static uint64_t mixed(const struct user_registers *r)
{
    const long kept[] = {r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15};
    uint64_t m = r->rsp;
    for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++)
        m = m * 31 + (uint64_t)kept[i];
    return m;
}

static bool is_proven(struct thread *t, const struct spin_registers *now)
{
    struct spin_result r;
    if (spin_kept_proof(t, &yields, now) == SPIN_KEPT_HOLDS)
        return true;
    if (++t->yields_unseen < t->yields_a_look || !spin_probe(t, now, &yields, &r))
        return false;
    t->yields_unseen = 0;
    count(spin_scans);
    t->wait_words = 0;
    if (r.verdict == SPIN_ENDLESS && !r.transient && !sched.observe_spinning)
        spin_note_proof(t, &yields, now, &r);
    if (!t->wait_words) {
        t->yields_a_look = t->yields_a_look < LAST_LOOK ? 2 * t->yields_a_look + 1 : LAST_LOOK;
        return false;
    }
    t->yields_a_look = 0;
    count(spin_waits);
    if (r.head)
        spin_site_ask(&r, false);
    return true;
}

bool spin_yields(struct thread *t, const struct user_registers *r, bool wanted, uint64_t now)
{
    uint64_t us = sched.tsc_per_us, from_where = mixed(r);
    bool naps = !wanted && nap_is_due(t->slot, now);
    if ((int64_t)(now - t->yielded_at) > (int64_t)(SAME_WAIT_US * us) ||
        from_where != t->yields_from)
        t->yields_since = now;
    t->yields_from = from_where;
    if ((!naps && (!wanted || now - t->yields_since < LET_US * us)) || !spin_may_give_way(t))
        return false;
    uintptr_t behind = t->site->after; /* where the call returns 0 */
    const struct spin_registers from = spin_registers_at(r, 0, behind, r->flags, behind);
    if (!is_proven(t, &from)) {
        if (naps)
            nap_not_yet(t->slot);
        return false;
    }
    if (naps)
        nap(t);
    else if (!slot_park(t, now))
        return false;
    t->yielded_at = tsc();
    if (waiting_words_changed(t))
        t->yields_since = t->yielded_at;
    else
        t->yielded_at += COLD_US * us;
    return true;
}

void spin_yielded(struct thread *t, uint64_t began)
{
    t->yielded_at = tsc();
    if (began && spin_switched(began, t->yielded_at))
        __atomic_store_n(&t->gave_way_at, t->yielded_at, __ATOMIC_RELAXED);
}
