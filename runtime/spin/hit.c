/* SPDX-License-Identifier: MIT
 *
 * A thread hits a spin site. While no other thread could run, it continues to spin, and hits again
 * in its next iteration. Otherwise its wait is proven once more, with the current registers and
 * memory, and it is parked.
 */
#include "sched/contention.h"
#include "sched/nap.h"
#include "sched/signals.h"
#include "sched/slots.h"
#include "sched/thread.h"
#include "sched/turns.h"
#include "sched/waiting.h"
#include "spin/probe.h"
#include "spin/site.h"
#include "spin/spin.h"

enum {
    FAILURES = 256,      /* failed interpretations before a site is retired */
    RETIRE_SHARE = 8,    /* failures forgiven for each wait: fewer waits are not worth a site */
    ADD_UP = 32,         /* waits of a thread before they are added to the statistics */
    SAME_WAIT_NS = 1000, /* maximum between two iterations of one wait */
    BACKOFF_MAX = 10,    /* log2 of the hits that a thread skips without an interpretation */
    BACKOFF_HINT = 4,    /* log2, at hint sites, where it yields at each hit */
    BACKOFF_FAILED = 8,  /* log2, at hint sites where waits are hardly ever proven */
    /* Excess of long waits over short ones at a site, before few spin first; as in futex.c. */
    LONG_WAITS = 16,
    RETRY = 32,    /* one wait in RETRY spins first at such a site */
    KERNEL_US = 5, /* minimum between two yields at hint sites that switch the kernel thread */
    /* yields after a proof of a wait for more words than a thread can be parked on */
    MANY_TURNS = 64,
    IN_VAIN = 16, /* yields in a row that do not switch, before the thread sleeps */
    NAP_US = 20,  /* sleep after IN_VAIN yields; the kernel's slack adds 50 us */
};

/* Words that enter.S pushes on the program's stack. */
struct pushed {
    uint64_t r11, rcx;
    uintptr_t go_on;
};

static struct spin_registers registers_at(const struct spin_site *site,
                                          const struct user_registers *r, const struct pushed *p)
{
    return spin_registers_at(r, (uint64_t)r->rax, p->rcx, p->r11, site->address);
}

/* Add the counts of t to the statistics of its loop. They are approximate: threads add without
 * atomics. They add rarely, because threads on other CPUs read the same cache line. */
static void add_up(struct thread *t)
{
    struct lissom_loop *loop = t->counted_site ? t->counted_site->loop : NULL;
    if (loop) {
        loop->waits += t->site_waits;
        loop->yields += t->site_yields;
        loop->short_spins += t->site_short_spins;
        loop->waited_tsc += t->site_waited;
    }
    t->site_waits = t->site_yields = t->site_short_spins = 0;
    t->site_waited = 0;
}

/* Count one more of `kind`, a field of t->site_*, at this site. */
static void count_at(struct thread *t, const struct spin_site *site, uint32_t *kind)
{
    if (t->counted_site != site || *kind == ADD_UP) {
        add_up(t);
        t->counted_site = site;
    }
    ++*kind;
}

void spin_thread_ends(struct thread *t)
{
    add_up(t);
    t->counted_site = NULL;
}

/* Account the time from t->wait_began to `until` as lost, if t waits at a site. */
static void spun(struct thread *t, uint64_t until)
{
    if (t->wait_site && until > t->wait_began)
        threshold_lost(t->slot, until - t->wait_began, 1);
    t->wait_began = until;
}

static void give_way(struct thread *t, const struct spin_site *site, uint64_t now)
{
    spun(t, now);
    threshold_wait_begins(t->slot, now, 1);
    if (!t->wait_words) {
        count_at(t, site, &t->site_yields);
        slot_yield_spinning(t, now);
        threshold_wait_ended(t->slot);
    } else if (!slot_park(t, now)) {
        threshold_wait_ended(t->slot);
    } else {
        count_at(t, site, &t->site_waits);
        t->site_waited += tsc() - now;
    }
}

/* Returns whether t may yield again. A switch to another kernel thread takes some us, so a thread
 * that is bound to its own spins for longer between two yields. */
static bool kernel_turn_over(const struct thread *t, uint64_t now)
{
    return !thread_stays(t) || now - t->mounted_at >= KERNEL_US * sched.tsc_per_us;
}

/* Yield a thread that pauses but is not proven to wait: it runs again after all other ready
 * threads. */
static void yield_at_hint(struct thread *t, const struct spin_site *site, uint64_t now)
{
    if (!kernel_turn_over(t, now))
        return;
    t->wait_words = 0;
    give_way(t, site, now);
}

/* Returns whether t spins on without an interpretation. Locks are often held for less time than a
 * switch takes. The next thread would want the same lock, and so would all ready ones, one after
 * the other. Each site learns whether its waits are short. */
static bool spins_first(struct thread *t, struct spin_site *site, uint64_t now)
{
    uint64_t us = sched.tsc_per_us;
    uint64_t turns = site->seldom ? SPIN_SELDOM : 1;
    /* A loop may have several sites, and call functions with loops that have some. */
    bool same = t->wait_site &&
                (t->wait_site->of_loop == site->of_loop || t->wait_site->foreign || site->foreign ||
                 __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED)) &&
                now - t->hit_at < turns * SAME_WAIT_NS * us / 1000;
    if (same) {
        site = t->wait_site;
    } else {
        if (t->wait_site && t->spins_first) { /* the last wait was short */
            count_at(t, t->wait_site, &t->site_short_spins);
            t->wait_site->long_waits -= t->wait_site->long_waits < 4 ? t->wait_site->long_waits : 4;
        }
        spun(t, t->hit_at);
        threshold_event(t->slot);
        t->wait_site = site;
        t->goes_on = false;
        t->wait_began = now;
        t->spins_first = site->long_waits < LONG_WAITS || t->skipped++ % RETRY == 0;
    }
    t->hit_at = now;
    if (!t->spins_first)
        return false;
    if (now - t->wait_began < threshold_ns() * us / 1000)
        return true;
    t->spins_first = false;
    if (site->long_waits < LONG_WAITS)
        site->long_waits++;
    return false;
}

/* Update the site and t's backoff after an interpretation. A failed one is expensive, so t skips
 * ever more of them. */
static void judge(struct thread *t, struct spin_site *site, bool waits)
{
    if (waits && site->failed)
        site->failed = site->failed > RETIRE_SHARE ? site->failed - RETIRE_SHARE : 0;
    if (!waits && site->failed < FAILURES && ++site->failed == FAILURES && !site->hint) {
        site->hint = site->pause; /* working threads may pass other sites */
        if (!site->hint)
            spin_site_retire(site);
    }
    uint32_t most = !site->hint                ? BACKOFF_MAX
                    : site->failed == FAILURES ? BACKOFF_FAILED
                                               : BACKOFF_HINT;
    t->backoff = waits ? 0 : t->backoff < most ? t->backoff + 1 : most;
    t->backoff_turns = waits ? 0 : (1u << t->backoff) - 1;
    t->backoff_site = t->wait_site;
}

/* Yield the CPU to other processes; in_turns: pass the turn if possible. The kernel ignores yields
 * if the others belong to other scheduling groups, for instance with a group for each session
 * (sched(7), autogroup). They get the CPU if t sleeps. */
static void yield_cpu(struct thread *t, bool in_turns)
{
    uint64_t now = tsc();
    if (in_turns && turns_pass(t))
        return;
    prim_syscall3(SYS_sched_yield, 0, 0, 0);
    t->yields_in_vain = spin_switched(now, tsc()) ? 0 : t->yields_in_vain + 1;
    if (t->yields_in_vain < IN_VAIN || !__atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED))
        return;
    t->yields_in_vain = 0;
    if (!slots_one_is_busy() || !turns_pass(t))
        nap_for(t, NAP_US);
}

/* Give the CPU to others, if they want it. */
static void share_cpu(struct thread *t, const struct spin_site *site, uint64_t now)
{
    struct slot *s = t->slot;
    bool in_turns = slots_one_is_busy() && turns_wanted(), own_slots = contention_on_cpu(s);
    if (!in_turns && !own_slots && !contended(now))
        return;
    /* Yield to a thread that is known to wait for this CPU: it would otherwise wait for the end of
     * a slice. Sleep if another program may want the CPU: after a yield it would run for a whole
     * slice, but a sleep ends earlier. */
    if (own_slots || in_turns || __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED))
        yield_cpu(t, in_turns);
    else
        nap_for(t, NAP_US);
    if ((site->counts || site->hint) && !turns_taken())
        t->counts_on = waiting_turns(tsc() - now, 1);
    if (s->alone_at)
        s->alone_at = tsc();
}

/* No other thread could run in the place of t: nap, continue to spin, or share the CPU. */
static void spins_alone(struct thread *t, const struct spin_site *site,
                        const struct user_registers *r, const struct pushed *p, uint64_t now)
{
    struct slot *s = t->slot;
    bool naps = nap_is_due(s, now);
    if (naps) {
        const struct spin_registers at = registers_at(site, r, p);
        struct spin_result result;
        naps = spin_kept_proof(t, site, &at) == SPIN_KEPT_HOLDS;
        if (!naps && spin_probe(t, &at, site, &result) && result.verdict == SPIN_ENDLESS) {
            spin_remember(t, &result);
            naps = t->wait_words;
        }
        if (!naps)
            nap_not_yet(s);
    }
    if (naps) {
        nap(t);
    } else if (t->counts_on && (site->counts || site->hint)) {
        t->counts_on--; /* a counter may end the loop, as in slot_yield_spinning */
    } else {
        share_cpu(t, site, now);
    }
}

static void arrived(struct thread *t, struct spin_site *site, struct user_registers *r,
                    struct pushed *p)
{
    uint64_t at = tsc();
    if (!spin_may_give_way(t) || spins_first(t, site, at))
        return;
    if (!slot_wanted(t, at)) {
        spins_alone(t, site, r, p, at);
        return;
    }
    /* It probably waits for another process. An interpretation takes as long as tens of
     * iterations. */
    if (turns_taken() && __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED)) {
        yield_at_hint(t, site, at);
        return;
    }
    if (t->counts_on && (site->pauses || site->counts)) {
        t->counts_on--;
        return;
    }
    if (site->hint && t->backoff && t->backoff_site == t->wait_site && !kernel_turn_over(t, at))
        return;
    if (t->backoff_turns && t->backoff_site == t->wait_site) {
        t->backoff_turns--;
        if (site->hint || site->many)
            yield_at_hint(t, site, at);
        return;
    }
    t->backoff_turns = 0;
    struct spin_registers now = registers_at(site, r, p);
    struct spin_result result;
    enum spin_kept kept = spin_kept_proof(t, site, &now);
    if (kept == SPIN_KEPT_HOLDS) {
        judge(t, site, true);
        give_way(t, site, at);
        return;
    }
    /* if it still waits, it will hit again */
    if (kept == SPIN_KEPT_FOR_OTHER_WORDS && !t->goes_on) {
        t->goes_on = true;
        return;
    }
    if (!spin_probe(t, &now, site, &result))
        return;
    bool waits =
        result.verdict == SPIN_ENDLESS ||
        (result.verdict == SPIN_COUNTED && (site->pauses || site->counts) && spin_is_wait(&result));
    judge(t, site, waits);
    if (!waits && site->hint)
        yield_at_hint(t, site, at);
    if (!waits)
        return;
    spin_note_proof(t, site, &now, &result);
    if (!t->wait_words) { /* it yields: a proof takes 100 times as long */
        site->many = true;
        t->backoff_turns = MANY_TURNS;
    }
    give_way(t, site, at);
}

/* Called by enter.S when t hits a site. r: t's registers, of which rcx and r11 are on the program's
 * stack. Returns ACTION_RETURN or ACTION_RAISE. */
long lissom_spin_hit(struct user_registers *r, struct thread *t);
long lissom_spin_hit(struct user_registers *r, struct thread *t)
{
    struct pushed *p = (struct pushed *)t->user_rsp;
    struct spin_site *site;
    __builtin_memcpy(&site, (const char *)p->go_on + SPIN_SITE_WORD, sizeof site);
    if (site->seldom)
        t->seldom_turns = SPIN_SELDOM;
    r->rip = site->address; /* for debuggers, which do not know the stub */
    arrived(t, site, r, p);
    return t->pending_work ? signals_leave(t, r, ACTION_RETURN) : ACTION_RETURN;
}
