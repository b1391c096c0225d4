/* SPDX-License-Identifier: MIT */
#include "sched/nap.h"
#include "policy/haltpoll.h"
#include "prim/lock.h"
#include "sched/contention.h"
#include "sched/slots.h"
#include "sched/turns.h"
#include "sched/waiting.h"

#include <time.h>

enum {
    TURN_US = 1000,   /* maximum time between two turns of a spin in which nothing happens */
    FIRST_US = 10000, /* time alone before the first nap */
    /* limit of that time, which doubles after each nap in vain */
    FIRST_MAX_US = 1000000,
    SHARE = 128, /* a nap takes this part of the time alone */
    MIN_US = 100,
    MAX_US = 500,       /* bounds of a nap: MIN_US to MAX_US */
    LOOK_MAX_US = 1000, /* bounds of the monitor's period: MAX_US to this */
    LONG_US = 10000,    /* a nap while the monitor checks the words */
    NO_BOUND = 0,       /* as `now`: no wait is over because of its length */
};

bool nap_is_due(struct slot *s, uint64_t now)
{
    uint64_t us = sched.tsc_per_us, before = s->alone_at;
    if (before)
        contention_guess(before, now);
    s->alone_at = now;
    /* Another thread may have run meanwhile, on an extra place. */
    if (!before || (int64_t)(now - before) > (int64_t)(TURN_US * us))
        s->alone_since = now;
    if (!s->nap_after_us)
        s->nap_after_us = FIRST_US;
    return now - s->alone_since > s->nap_after_us * us && slots_anything_ready() &&
           sched.idle_policy != IDLE_POLL;
}

static bool anything_ready(void)
{
    for (uint32_t i = 0; i < slots_open(); i++)
        if (slot_ready_count(&sched.slot[i]) && !slot_is_kept(&sched.slot[i]))
            return true;
    return false;
}

void nap_begin(const struct thread *t, enum nap_kind kind)
{
    __atomic_fetch_add(&sched.naps, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&t->slot->napping, kind, __ATOMIC_SEQ_CST);
}

/* A thread that pushes to a run queue checks for naps after that (naps_end). */
bool nap_may_sleep(const struct thread *t)
{
    return !anything_ready() && !slot_is_closed(t->slot) && !t->pending_work;
}

bool nap_finish(const struct thread *t)
{
    struct slot *s = t->slot;
    bool ended = !__atomic_exchange_n(&s->napping, NAP_NONE, __ATOMIC_RELAXED);
    /* It is not blocked: the monitor need not run another thread beside it. */
    __atomic_fetch_add(&s->schedules, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&sched.naps, 1, __ATOMIC_RELAXED);
    count(naps);
    return ended;
}

bool nap_for(const struct thread *t, uint64_t us)
{
    const struct timespec span = {.tv_nsec = (long)us * 1000};
    nap_begin(t, NAP_FOR_A_TIME);
    if (nap_may_sleep(t))
        prim_syscall4(SYS_futex, &t->slot->napping, PRIM_FUTEX_WAIT_PRIVATE, NAP_FOR_A_TIME, &span);
    return nap_finish(t);
}

static bool monitor_looks(uint64_t now)
{
    return now - __atomic_load_n(&sched.naps_looked_at, __ATOMIC_RELAXED) <
           2 * LOOK_MAX_US * sched.tsc_per_us;
}

void nap(struct thread *t)
{
    struct slot *s = t->slot;
    uint64_t us = (s->alone_at - s->alone_since) / sched.tsc_per_us / SHARE;
    if (us > MAX_US)
        us = monitor_looks(s->alone_at) ? LONG_US : MAX_US;
    __atomic_store_n(&s->napper, t, __ATOMIC_RELEASE);
    bool ended = nap_for(t, us < MIN_US ? MIN_US : us);
    __atomic_store_n(&s->napper, NULL, __ATOMIC_RELAXED);
    bool in_vain = waiting_words_changed(t);
    if (in_vain && s->nap_after_us < FIRST_MAX_US)
        s->nap_after_us *= 2;
    if (ended || in_vain || anything_ready()) {
        nap_not_yet(s); /* it searches for threads to run, as without naps */
    } else {
        s->alone_at = tsc();
        s->nap_after_us = FIRST_US;
    }
}

static bool end(struct slot *s)
{
    uint32_t kind = __atomic_load_n(&s->napping, __ATOMIC_RELAXED);
    if (kind)
        kind = __atomic_exchange_n(&s->napping, NAP_NONE, __ATOMIC_SEQ_CST);
    if (kind == NAP_FOR_A_TIME)
        prim_futex_wake(&s->napping, 1);
    if (kind == NAP_FOR_A_TURN)
        turns_end();
    return kind;
}

void naps_end(const struct slot *s)
{
    if (!__atomic_load_n(&sched.naps, __ATOMIC_SEQ_CST))
        return;
    for (uint32_t i = 0; i < slots_open(); i++)
        if (end(slot_after(s, i)))
            return;
}

uint64_t naps_look(void)
{
    uint64_t now = tsc(), pause = LOOK_MAX_US;
    bool any = false;
    if (!__atomic_load_n(&sched.naps, __ATOMIC_RELAXED))
        return 0;
    for (uint32_t i = 0; i < slots_open(); i++) {
        struct slot *s = &sched.slot[i];
        const struct thread *t = __atomic_load_n(&s->napper, __ATOMIC_ACQUIRE);
        if (!t)
            continue;
        uint64_t us = (now - s->alone_since) / sched.tsc_per_us / SHARE;
        pause = us < pause ? us : pause;
        any = true;
        /* t may wake and wait for something else meanwhile: then its nap is over anyway */
        if (waiting_words_changed(t) || waiting_any_over(s, NO_BOUND, true))
            end(s);
    }
    if (!any) /* other naps only leave the CPU to another process (nap_for) */
        return 0;
    __atomic_store_n(&sched.naps_looked_at, now, __ATOMIC_RELAXED);
    return pause > MAX_US ? pause : MAX_US;
}
