/* SPDX-License-Identifier: MIT
 *
 * Slots and their run queues. The functions have the names of docs/design/slot-protocol.md; park is
 * in park.c.
 */
#include "sched/bind.h"
#include "sched/slots.h"
#include "sched/contention.h"
#include "sched/hooks.h"
#include "sched/nap.h"
#include "sched/ready.h"
#include "sched/release.h"
#include "sched/slices.h"
#include "sched/turns.h"
#include "sched/waiting.h"

struct scheduler sched;

void slots_init(uint32_t n)
{
    sched.slots = sched.slots_made = n;
    for (uint32_t i = 0; i < n; i++)
        sched.slot[i] = (struct slot){.index = i, .neighbour = i, .state = SLOT_IDLE};
    sched.idle_count = n;
    sched.naps = 0;
    sched.naps_looked_at = 0;
    sched.lone_contended = false;
    sched.crowd = 1;
}

/* Return whether a ready thread runs before parked ones whose wait is over: those may go first for
 * a slice at most. */
static bool ready_first(struct slot *s, uint64_t now)
{
    if (!s->ready_head)
        return false;
    if (!s->passed_since)
        s->passed_since = now;
    return now - s->passed_since > SLICE_US * sched.tsc_per_us;
}

struct thread *slot_next(struct slot *s)
{
    struct thread *t = NULL;
    if (s->waiting_head) {
        uint64_t now = tsc();
        t = ready_first(s, now) ? NULL : waiting_take_over(s, now);
        s->popped_since = s->active_since;
        s->popped_expired = false;
    }
    if (t || !s->ready_head)
        return t;
    s->passed_since = 0;
    nap_not_yet(s);
    return ready_pop(s);
}

static uint32_t state_of(const struct slot *s)
{
    return __atomic_load_n(&s->state, __ATOMIC_RELAXED);
}

/* Pre: s->lock. */
static void set_idle(struct slot *s)
{
    __atomic_store_n(&s->state, SLOT_IDLE, __ATOMIC_RELAXED);
    uint32_t others = __atomic_fetch_add(&sched.idle_count, 1, __ATOMIC_SEQ_CST);
    if (others + 1 == slots_open())
        __atomic_store_n(&sched.all_idle_since, tsc(), __ATOMIC_RELAXED);
}

void slot_set_busy(struct slot *s)
{
    __atomic_store_n(&s->state, SLOT_BUSY, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&sched.idle_count, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sched.naps, __ATOMIC_SEQ_CST))
        turns_end(); /* the napping thread may wait for the thread that will run here */
    poll_ended(s);
}

/* A runner of the closed slot s leaves it: an extra one, or the last. Pre: s->lock. */
static void leave_closed(struct slot *s)
{
    if (s->overcommit > 0)
        s->overcommit--;
    else
        __atomic_store_n(&s->state, SLOT_CLOSED, __ATOMIC_RELAXED);
    s->schedules++;
}

/* Claim s if it is idle. Returns whether the caller holds it. */
static bool claim(struct slot *s)
{
    if (state_of(s) != SLOT_IDLE)
        return false;
    lock_take(&s->lock);
    bool idle = s->state == SLOT_IDLE;
    if (idle)
        slot_set_busy(s);
    lock_drop(&s->lock);
    if (idle)
        monitor_slot_busy();
    return idle;
}

static void is_runner(struct thread *t)
{
    __atomic_store_n(&t->slot->runner, t, __ATOMIC_RELAXED);
    __atomic_store_n(&t->slot->computing, t->computes, __ATOMIC_RELAXED);
}

static void runs(struct thread *t)
{
    t->has_slot = true;
    if (t->loop_blocked)
        on_resume(t);
    threshold_wait_ended(t->slot);
}

/* t continues with t->slot after a futex wait or a slice: bind a pinned t to the CPU of its slot,
 * so that it does not queue behind another slot's thread that polls. */
static void got_slot(struct thread *t)
{
    is_runner(t);
    runs(t);
    if (t->pinned && (!t->bound || cpu_is_bound_elsewhere(t, t->slot)))
        cpu_bind(t, t->slot);
}

/* t continues with t->slot after a call that blocked in the kernel. Such threads change slots
 * often, and moving them costs more than it saves: unbind t from the CPU of another slot. */
static void got_any_slot(struct thread *t)
{
    runs(t);
    if (cpu_is_bound_elsewhere(t, t->slot))
        cpu_unbind(t);
}

struct slot *slots_claim_idle(const struct slot *preferred)
{
    if (__atomic_load_n(&sched.idle_count, __ATOMIC_RELAXED) == 0)
        return NULL;
    for (uint32_t i = 0; i < slots_open(); i++) {
        struct slot *s = slot_after(preferred, i);
        if (claim(s))
            return s;
    }
    return NULL;
}

struct thread *slot_pop(struct slot *s)
{
    if (slot_lists_nothing(s))
        return NULL;
    lock_take(&s->lock);
    struct thread *t = slot_next(s);
    if (t)
        s->schedules++;
    lock_drop(&s->lock);
    return t;
}

struct thread *slot_pop_with_events(struct slot *s)
{
    struct thread *t;
    if (!events_watched())
        return slot_pop(s);
    on_schedule();
    t = slot_pop(s);
    if (!t) {
        on_idle();
        t = slot_pop(s);
    }
    return t;
}

struct thread *slot_steal(const struct slot *thief)
{
    for (uint32_t i = 1; i <= slots_open(); i++) { /* all: a closed thief is not among them */
        struct slot *s = slot_after(thief, i);
        struct thread *t = s == thief || slot_is_kept(s) ? NULL : slot_pop(s);
        if (t) {
            count_on(thief, steals, 1);
            return t;
        }
    }
    return NULL;
}

/* Take a parked thread if no other can run: it spins as it would natively, and probes its words
 * itself. */
static struct thread *take_parked(const struct slot *thief)
{
    struct thread *t = NULL;
    for (uint32_t i = 0; i < slots_open() && !t; i++) {
        struct slot *s = slot_after(thief, i);
        if (!__atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED))
            continue;
        lock_take(&s->lock);
        t = waiting_take_any(s);
        lock_drop(&s->lock);
    }
    return t;
}

bool slots_anything_ready(void)
{
    for (uint32_t i = 0; i < slots_open(); i++)
        if (!slot_lists_nothing(&sched.slot[i]))
            return true;
    return false;
}

bool slots_anything_to_take(void)
{
    for (uint32_t i = 0; i < slots_open(); i++)
        if (!slot_lists_nothing(&sched.slot[i]) && !slot_is_kept(&sched.slot[i]))
            return true;
    return false;
}

/* Find a thread by its events (docs/design/event-loops.md, attend). Pre: the caller holds s. */
static struct thread *next_by_event(struct slot *s)
{
    on_idle();
    struct thread *t = slot_pop(s);
    if (!t) {
        on_unattended();
        t = slot_pop(s);
    }
    return t;
}

/* docs/design/slot-protocol.md, go_idle. Returns a thread that has become ready meanwhile: the
 * caller still holds s. Returns NULL if s is idle, or another thread holds it. Pre: the caller
 * holds s and has nothing to run. */
static struct thread *go_idle(struct slot *s)
{
    for (;;) {
        lock_take(&s->lock);
        if (s->closed) { /* its lists are empty */
            leave_closed(s);
            lock_drop(&s->lock);
            return NULL;
        }
        struct thread *t = slot_next(s);
        if (!t)
            t = waiting_take_any(s);
        /* the monitor has started an extra thread on s meanwhile */
        bool extra = !t && s->overcommit > 0;
        if (extra)
            s->overcommit--;
        else if (!t)
            set_idle(s);
        s->schedules++;
        lock_drop(&s->lock);
        if (t || extra)
            return t;
        /* IDLE is published, and dropping the lock was a full fence. A thread that pushes to
         * another list after this sees IDLE (make_ready); earlier pushes are seen here. */
        bool unattended = events_unattended();
        if ((!unattended && !slots_anything_to_take()) || !claim(s)) {
            turns_leave();
            return NULL;
        }
        t = unattended ? next_by_event(s) : NULL;
        if (!t)
            t = slot_steal(s);
        if (!t)
            t = take_parked(s);
        if (t)
            return t;
    }
}

/* Run another thread on s, or make s idle. Pre: the caller holds s and cannot run a thread on
 * it. */
void slot_pass_on(struct slot *s)
{
    /* the slot is left for the kernel: nothing polls, and its wait says nothing */
    s->idle_since = 0;
    struct thread *u = slot_pop_with_events(s);
    if (!u)
        u = go_idle(s);
    if (u)
        carrier_dispatch(u, s);
}

void slots_look_for_idle(struct slot *s)
{
    monitor_kick();
    struct slot *idle = slots_claim_idle(s);
    if (idle)
        slot_pass_on(idle);
    else if (slot_ready_count(s))
        naps_end(s);
}

/* Return whether t, which returns from the kernel, should run before the thread of s, which only
 * computes (sched/slices.h). t runs beside it: t is on a CPU already, and to preempt the other
 * thread would take two more kernel switches. Pre: s->lock. */
static bool goes_first(const struct slot *s, struct thread *t)
{
    return s->computing && !s->overcommit && ready_is_active(s, t);
}

/* Return whether t runs on its slot beside the thread there; otherwise it has to wait. */
static bool take_extra(struct thread *t)
{
    struct slot *s = t->slot;
    bool kernel = kernel_decides(tsc());
    if (!kernel && !__atomic_load_n(&s->computing, __ATOMIC_RELAXED))
        return false;
    lock_take(&s->lock);
    /* The slot's thread may be behind other programs. One extra thread is enough, but for pinned
     * ones. */
    kernel &= thread_stays(t) || !s->overcommit;
    bool extra = s->state != SLOT_IDLE && !s->closed && (kernel || goes_first(s, t));
    if (extra)
        s->overcommit++;
    lock_drop(&s->lock);
    if (extra && !kernel)
        count(went_first);
    return extra;
}

bool slot_try_acquire(struct thread *t)
{
    struct slot *s = claim(t->slot) ? t->slot : slots_claim_idle(t->slot);
    if (!s)
        return false;
    t->slot = s;
    is_runner(t);
    got_any_slot(t);
    t->mounted_at = tsc();
    return true;
}

void slot_acquire(struct thread *t)
{
    if ((giving_up() || t->real_time) && t->carrier == t->home)
        return;
    if (slot_try_acquire(t))
        return;
    if (!take_extra(t)) {
        slot_make_ready(t);
        carrier_sleep_attached(t, NULL, false);
        is_runner(t);
    }
    got_any_slot(t);
    t->mounted_at = tsc();
}

/* Extra places are passed on in two cases: while the kernel decides which threads run, and for a
 * slice after the monitor found that the slot's thread computes or is blocked. */
bool slot_hands_on(const struct slot *s)
{
    uint64_t now = tsc();
    return now < s->hand_on_until || kernel_decides(now);
}

/* Give up s. Returns true if the caller has to pass s on: to *next, or to any thread it finds if
 * that is NULL. Returns false if t's place has ended: t was an extra thread, or s is closed. */
static bool leave(struct thread *t, struct slot *s, struct thread **next)
{
    *next = NULL;
    t->has_slot = false;
    slices_begin_anew(t, s);
    lock_take(&s->lock);
    if (s->closed) {
        leave_closed(s);
        lock_drop(&s->lock);
        return false;
    }
    ready_charge(s, t);
    bool extra = s->overcommit > 0;
    if (extra ? slot_hands_on(s) : !events_watched()) {
        *next = carrier_take_reserved(t);
        if (!*next)
            *next = slot_next(s);
    }
    bool ends = extra && !*next;
    if (ends)
        s->overcommit--;
    s->schedules++;
    lock_drop(&s->lock);
    return !ends;
}

void slot_release(struct thread *t)
{
    struct slot *s = t->slot;
    struct thread *u;
    if (!t->has_slot)
        return;
    if (t->at_work)
        on_block(t);
    if (!leave(t, s, &u))
        return;
    if (u)
        carrier_dispatch(u, s);
    else
        slot_pass_on(s);
}

/* Find a successor of t, which leaves s. Polls for a while; returns NULL if there is none. */
static struct thread *next_after(struct thread *t, struct slot *s)
{
    struct thread *u = carrier_take_reserved(t);
    if (!u)
        u = slot_pop_with_events(s);
    if (!u)
        u = slot_steal(s);
    if (!u)
        u = take_parked(s);
    if (!u)
        u = slot_poll(t, s);
    return u;
}

static void rest(struct thread *t)
{
    if (thread_stays(t))
        carrier_sleep_attached(t, NULL, false);
    else
        carrier_rest(t);
    got_slot(t);
}

/* Return whether t, which no longer holds s, was granted another slot while it searched for a
 * successor. */
static bool granted_meanwhile(struct thread *t)
{
    uint32_t granted = GRANTED;
    return __atomic_load_n(&t->attach, __ATOMIC_RELAXED) == GRANTED &&
           __atomic_compare_exchange_n(&t->attach, &granted, ATTACHED, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

bool slot_block(struct thread *t, struct slot *s, const struct timespec *deadline, bool realtime)
{
    struct thread *u;
    uint64_t now = t->wait_since;
    enum lissom_pin_reason kept_by = thread_kept_by(t);
    if (kept_by != LISSOM_PIN_NONE)
        __atomic_fetch_add(&record->kept_waits[kept_by], 1, __ATOMIC_RELAXED);
    if (t->at_work)
        on_block(t);
    if (leave(t, s, &u)) {
        if (!u) {
            u = next_after(t, s);
            now = 0; /* time has passed */
        }
        if (!u)
            u = go_idle(s);
        if (u == t) {
            t->slot = s;
            t->mounted_at = tsc();
            got_slot(t);
            return true;
        }
        if (u && granted_meanwhile(t)) { /* t continues elsewhere; u must not come with it */
            if (u->homing) {             /* it needs this carrier, which stays with t */
                carrier_put_back_reserved(t, u);
                slot_pass_on(s);
            } else {
                carrier_dispatch(u, s);
            }
            got_slot(t);
            return true;
        }
        if (u && carrier_run_next(t, u, s, now)) {
            got_slot(t);
            return true;
        }
    }
    if (!deadline && !thread_stays(t))
        carrier_rest(t);
    else if (!carrier_sleep_attached(t, deadline, realtime))
        return false;
    got_slot(t);
    return true;
}

void slot_await(struct thread *t)
{
    carrier_sleep_attached(t, NULL, false);
    got_slot(t);
}

void slot_hand_over(struct thread *t, struct slot *s, struct thread *u)
{
    t->has_slot = false;
    slots_look_for_idle(s);
    if (!u || !carrier_run_next(t, u, s, 0))
        rest(t);
    else
        got_slot(t);
}

void slot_leave_closed(struct thread *t, struct slot *s, struct thread *u)
{
    if (!u)
        leave_closed(s);
    lock_drop(&s->lock);
    slot_make_ready(t);
    t->has_slot = false;
    if (!u || !carrier_run_next(t, u, s, 0))
        rest(t);
    else
        got_slot(t);
}

static void yield(struct thread *t, bool to_woken)
{
    struct slot *s = t->slot;
    if (!t->has_slot)
        return;
    struct thread *u = carrier_take_reserved(t);
    on_schedule();
    if (!u && slot_lists_nothing(s) && !slot_is_closed(s))
        return;
    if (!to_woken)
        ready_slice_ended(t);
    lock_take(&s->lock);
    if (s->closed) {
        count(yields);
        slot_leave_closed(t, s, u);
        return;
    }
    bool reserved = u;
    if (!u)
        u = slot_next(s);
    bool extra = u && !reserved && s->overcommit > 0 && !slot_hands_on(s);
    if (u && to_woken)
        ready_push_first_expired(s, t);
    else if (u)
        ready_push_expired(s, t);
    if (extra) { /* one runner fewer: u returns to the head of the list */
        s->overcommit--;
        ready_unpop(s, u);
    }
    s->schedules++;
    lock_drop(&s->lock);
    if (!u)
        return;
    count(yields);
    slot_hand_over(t, s, extra ? NULL : u);
}

void slot_yield(struct thread *t) { yield(t, false); }

void slot_make_way(struct thread *t)
{
    t->slice_ran += tsc() - t->mounted_at;
    count(went_first);
    yield(t, true);
}

bool slot_step_back(struct thread *t)
{
    struct slot *s = t->slot;
    lock_take(&s->lock);
    bool extra = s->overcommit && !s->closed;
    if (extra) {
        s->overcommit--;
        s->schedules++;
    }
    lock_drop(&s->lock);
    if (!extra)
        return false;
    count(yields);
    ready_slice_ended(t);
    slot_make_ready(t);
    t->has_slot = false;
    rest(t);
    return true;
}

void slot_overcommit(struct slot *s)
{
    lock_take(&s->lock);
    struct thread *u = slot_next(s);
    if (u) {
        s->overcommit++;
        s->hand_on_until = tsc() + SLICE_US * sched.tsc_per_us;
    }
    lock_drop(&s->lock);
    if (!u)
        return;
    count(overcommits);
    contention_of_our_own();
    carrier_dispatch(u, s);
}
