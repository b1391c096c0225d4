/* SPDX-License-Identifier: MIT */
#include "sched/turns.h"
#include "abi.h"
#include "sched/nap.h"
#include "sched/slots.h"

#include <errno.h>
#include <time.h>

enum {
    TURN_NS = 3000000,
    HERE_SHARE = 6, /* part of the longest wait: see look */
    /* time after a sleep until the next: a third of the cost of a sleep and a wake */
    POLL_NS = 1500,
    FUTEX_WAIT_SHARED = 0,
    FUTEX_WAKE_SHARED = 1,
};

static struct {
    struct lissom_turn *turn; /* NULL: takes no part */
    uint32_t self;
    uint64_t mask;
    uint32_t entries, most;
    uint32_t busy;        /* a thread is in turns_pass: they share one word */
    uint64_t polls_until; /* tsc */
} own;

static struct lissom_turn *shared(void) { return __atomic_load_n(&own.turn, __ATOMIC_ACQUIRE); }

void turns_after_fork(void)
{
    own.turn = NULL;
    own.busy = 0;
}

static bool becomes(struct lissom_turn *e, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&e->word, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* Rule 4: take the turns from processes that have not been at a site since then. */
static void end_turns_since(struct lissom_turn *turn, uint64_t since)
{
    for (uint32_t i = 0, n = __atomic_load_n(&own.entries, __ATOMIC_RELAXED); i < n; i++)
        if (i != own.self && __atomic_load_n(&turn[i].at, __ATOMIC_RELAXED) < since)
            becomes(&turn[i], TURN_HELD, TURN_NONE);
}

static bool give(struct lissom_turn *e)
{
    if (!becomes(e, TURN_WANTED, TURN_HELD))
        return false;
    prim_syscall3(SYS_futex, &e->word, FUTEX_WAKE_SHARED, 1);
    return true;
}

/* A summary of the other processes' words. */
struct others {
    uint32_t held, before;       /* number of turns held, and held by lower numbers */
    struct lissom_turn *wanting; /* process to give the turn to; NULL: none wants one */
};

static uint64_t age_of(const struct lissom_turn *e, uint64_t now)
{
    uint64_t at = __atomic_load_n(&e->at, __ATOMIC_RELAXED);
    return now > at ? now - at : 0;
}

static bool is_ours(const struct lissom_turn *e)
{
    return __atomic_load_n(&e->mask, __ATOMIC_RELAXED) == own.mask;
}

static bool wants(const struct lissom_turn *e)
{
    return __atomic_load_n(&e->word, __ATOMIC_RELAXED) == TURN_WANTED && is_ours(e);
}

/* A switch between two processes on one CPU takes half the time of a wake-up on another CPU. So
 * prefer the next process of this CPU that has waited for a part of the longest wait. Otherwise,
 * choose the process that has waited longest. With a stronger preference, one CPU may rotate among
 * six processes while the other alternates between two that wait for those. */
static struct others look(struct lissom_turn *turn)
{
    struct others o = {0};
    uint64_t now = tsc(), oldest = 0;
    uint32_t n = __atomic_load_n(&own.entries, __ATOMIC_RELAXED);
    uint32_t cpu = turn[own.self].cpu;
    for (uint32_t i = 1; i < n; i++) {
        struct lissom_turn *e = &turn[(own.self + i) % n];
        uint32_t word = __atomic_load_n(&e->word, __ATOMIC_SEQ_CST);
        if (word == TURN_NONE || !is_ours(e))
            continue;
        if (word == TURN_HELD) {
            o.held++;
            o.before += e < &turn[own.self];
        } else if (word == TURN_WANTED && (!o.wanting || age_of(e, now) > oldest)) {
            o.wanting = e;
            oldest = age_of(e, now);
        }
    }
    for (uint32_t i = 1; o.wanting && i < n; i++) {
        struct lissom_turn *e = &turn[(own.self + i) % n];
        if (wants(e) && __atomic_load_n(&e->cpu, __ATOMIC_RELAXED) == cpu &&
            age_of(e, now) >= oldest / HERE_SHARE) {
            o.wanting = e;
            break;
        }
    }
    return o;
}

bool turns_taken(void)
{
    const struct lissom_turn *turn = shared();
    return turn && __atomic_load_n(&turn[own.self].word, __ATOMIC_RELAXED) != TURN_NONE;
}

bool turns_wanted(void)
{
    struct lissom_turn *turn = shared();
    for (uint32_t i = 0, n = __atomic_load_n(&own.entries, __ATOMIC_RELAXED); turn && i < n; i++)
        if (i != own.self && wants(&turn[i]))
            return true;
    return false;
}

bool turns_passed(void)
{
    static uint64_t before;
    uint64_t turns = __atomic_load_n(&record->counter[LISSOM_C_turns], __ATOMIC_RELAXED);
    bool passed = turns != before;
    before = turns;
    return passed;
}

void turns_end(void)
{
    struct lissom_turn *turn = shared();
    if (turn)
        give(&turn[own.self]);
}

void turns_leave(void)
{
    struct lissom_turn *turn = shared();
    if (!turns_taken() || !becomes(&turn[own.self], TURN_HELD, TURN_NONE))
        return;
    struct others o = look(turn);
    if (o.wanting)
        give(o.wanting);
}

/* Give the turn to another process; our own word is WANTED. Returns false if there is none.
 * `spare`: there are more turns than CPUs, and it is enough that another is held. */
static bool hand_over(struct lissom_turn *turn, struct lissom_turn *to, bool spare)
{
    if (spare)
        return look(turn).held;
    while (to && !give(to))
        to = look(turn).wanting;
    return to;
}

static void sleep_until_turn(struct lissom_turn *turn, uint64_t now)
{
    const struct timespec span = {.tv_nsec = TURN_NS};
    count(turns);
    if (prim_syscall4(SYS_futex, &turn[own.self].word, FUTEX_WAIT_SHARED, TURN_WANTED, &span) ==
        -ETIMEDOUT)
        end_turns_since(turn, now);
}

static bool pass(const struct thread *t, struct lissom_turn *turn, uint64_t now)
{
    struct lissom_turn *me = &turn[own.self];
    uint32_t most = __atomic_load_n(&own.most, __ATOMIC_RELAXED);
    __atomic_store_n(&me->cpu, prim_cpu(), __ATOMIC_RELAXED);
    __atomic_store_n(&me->at, now, __ATOMIC_RELAXED);
    becomes(me, TURN_NONE, TURN_HELD);
    struct others o = look(turn);
    if (o.wanting && o.held + 1 < most)
        return give(o.wanting);
    bool spare = o.before >= most;
    if (!spare && !o.wanting)
        return false;
    nap_begin(t, NAP_FOR_A_TURN);
    __atomic_store_n(&me->word, TURN_WANTED, __ATOMIC_SEQ_CST);
    bool passed = hand_over(turn, o.wanting, spare);
    if (passed && nap_may_sleep(t) && slots_one_is_busy())
        sleep_until_turn(turn, now);
    becomes(me, TURN_WANTED, TURN_HELD);
    nap_finish(t);
    own.polls_until = tsc() + POLL_NS * sched.tsc_per_us / 1000;
    return passed;
}

bool turns_pass(const struct thread *t)
{
    if (!shared() || __atomic_exchange_n(&own.busy, 1, __ATOMIC_ACQUIRE))
        return false;
    struct lissom_turn *turn = shared();
    uint64_t now = tsc();
    bool passed = turn && (now < own.polls_until || pass(t, turn, now));
    __atomic_store_n(&own.busy, 0, __ATOMIC_RELEASE);
    return passed;
}

void turns_join(struct lissom_turn *turn, uint32_t self, uint64_t mask)
{
    const struct timespec moment = {.tv_nsec = 50000};
    struct lissom_turn *before = shared();
    turns_leave();
    __atomic_store_n(&own.turn, NULL, __ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&own.busy, 1, __ATOMIC_ACQUIRE)) { /* a thread still sleeps */
        if (before)
            give(&before[own.self]);
        prim_syscall3(SYS_nanosleep, &moment, NULL, 0);
    }
    if (before)
        becomes(&before[own.self], TURN_HELD, TURN_NONE);
    own.self = self;
    own.mask = mask;
    if (turn) {
        __atomic_store_n(&turn[self].word, TURN_NONE, __ATOMIC_SEQ_CST);
        __atomic_store_n(&turn[self].mask, mask, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&own.turn, turn, __ATOMIC_RELEASE);
    __atomic_store_n(&own.busy, 0, __ATOMIC_RELEASE);
}

void turns_set(uint32_t entries, uint32_t most)
{
    struct lissom_turn *turn = shared();
    __atomic_store_n(&own.entries, entries, __ATOMIC_RELAXED);
    __atomic_store_n(&own.most, most, __ATOMIC_RELAXED);
    /* processes may have ended while the others pass their turns on and never time out */
    if (turn)
        end_turns_since(turn, tsc() - 2 * (TURN_NS / 1000) * sched.tsc_per_us);
}
