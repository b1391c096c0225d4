/* SPDX-License-Identifier: MIT
 *
 * Carriers: which kernel thread runs a context. docs/design/slot-protocol.md: dispatch, run_next,
 * rest, finish, migrate_home.
 */
#include "sched/bind.h"
#include "sched/contention.h"
#include "sched/ext.h"
#include "sched/hooks.h"
#include "sched/deferred.h"
#include "sched/thread.h"
#include "sched/signals.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

/* --- the free list: under sched.free_lock ----------------------------------------------------- */

static void free_push(struct carrier *k)
{
    k->free_prev = NULL;
    k->free_next = sched.free_head;
    if (sched.free_head)
        sched.free_head->free_prev = k;
    sched.free_head = k;
    k->on_free = true;
}

static void free_remove(struct carrier *k)
{
    if (k->free_prev)
        k->free_prev->free_next = k->free_next;
    else
        sched.free_head = k->free_next;
    if (k->free_next)
        k->free_next->free_prev = k->free_prev;
    k->on_free = false;
}

/* Set K.reserved. For the monitor, carriers with a reservation are in a list. */
static void reserve(struct carrier *k, struct thread *t)
{
    k->reserved = t;
    k->reserved_seen = false;
    k->reserved_next = sched.reserved_head;
    sched.reserved_head = k;
}

static struct thread *take_reserved(struct carrier *k)
{
    struct thread *t = k->reserved;
    if (!t)
        return NULL;
    for (struct carrier **p = &sched.reserved_head; *p; p = &(*p)->reserved_next)
        if (*p == k) {
            *p = k->reserved_next;
            break;
        }
    k->reserved = NULL;
    return t;
}

static void order(struct carrier *k, struct thread *t, struct slot *s)
{
    k->order_slot = s;
    __atomic_store_n(&k->order, t, __ATOMIC_RELEASE);
    __atomic_store_n(&k->park, 1, __ATOMIC_RELEASE);
    prim_futex_wake(&k->park, 1);
    count(switches_kernel);
}

/* --- giving a slot to a thread ---------------------------------------------------------------- */

/* Grant s to t. Returns true if t is on a carrier, which continues as t. Returns false if t is
 * DETACHED: the caller still owns it. `from`: the carrier whose thread is about to sleep, which may
 * wake t with the same call (flush); NULL: wake t here. */
static bool grant(struct thread *t, struct slot *s, struct carrier *from)
{
    uint32_t a = __atomic_load_n(&t->attach, __ATOMIC_ACQUIRE);
    if (a == DETACHED)
        return false;
    t->slot = s;
    t->mounted_at = tsc();
    /* Bind t before the grant, which makes it run. This matters also while t is still on its way to
     * sleep: on the CPU of its old slot it may be behind that slot's next thread, which may
     * poll. */
    cpu_bind(t, s);
    while (a != DETACHED) {
        /* read before the grant: afterwards t may move to another carrier */
        int32_t tid = a == PARKED ? t->carrier->tid : 0;
        if (__atomic_compare_exchange_n(&t->attach, &a, GRANTED, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            if (a == ASLEEP)
                prim_futex_wake(&t->attach, 1);
            else if (a == PARKED && from)
                from->to_wake = tid;
            else if (a == PARKED)
                ext_park(false, tid);
            if (a == ASLEEP || a == PARKED)
                count(switches_kernel);
            return true;
        }
    }
    return false;
}

static void prepare(struct thread *t, struct slot *s, uint64_t now)
{
    t->slot = s;
    t->has_slot = true;
    t->mounted_at = now;
    __atomic_store_n(&t->attach, ATTACHED, __ATOMIC_RELAXED);
}

void carrier_dispatch(struct thread *t, struct slot *s)
{
    if (grant(t, s, NULL))
        return;
    lock_take(&sched.free_lock);
    struct carrier *k = sched.free_head; /* never empty: docs/design/slot-protocol.md, rest */
    if (!k)
        __builtin_trap();
    free_remove(k);
    lock_drop(&sched.free_lock);
    prepare(t, s, tsc());
    order(k, t, s);
}

void carrier_finish(struct thread *prev)
{
    if (!prev)
        return;
    if (__atomic_exchange_n(&prev->attach, DETACHED, __ATOMIC_ACQ_REL) == GRANTED)
        carrier_dispatch(prev, prev->slot);
}

/* Finish mounting a context on t->carrier: the first thing that the context does. */
static void mounted(struct thread *t, struct thread *prev)
{
    carrier_finish(prev);
    if (t->carrier->unnotified)
        t->pending_work = 1;
}

static void mount(struct carrier *k, struct thread *t)
{
    t->carrier = k;
    __atomic_store_n(&k->current, t, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

bool carrier_run_next(struct thread *t, struct thread *u, struct slot *s, uint64_t now)
{
    if (grant(u, s, t->carrier)) {
        t->carrier->handed_on = true;
        return false;
    }
    if (thread_stays(t) || t->deadline) {
        carrier_dispatch(u, s);
        return false;
    }
    struct carrier *k = t->carrier;
    prepare(u, s, now ? now : tsc());
    mount(k, u);
    count_on(s, switches_user, 1);
    mounted(t, lissom_switch(t, u));
    return true;
}

/* --- a carrier with nothing to carry ---------------------------------------------------------- */

static _Noreturn void carrier_loop(struct carrier *k)
{
    for (bool slept = false;; slept = true) {
        if (k->unnotified)
            deferred_notify(k);
        struct thread *u = __atomic_load_n(&k->order, __ATOMIC_ACQUIRE);
        if (u) {
            k->order = NULL;
            __atomic_store_n(&k->park, 0, __ATOMIC_RELAXED);
            if (slept)
                contention_woke(u);
            mount(k, u);
            lissom_enter(u, NULL);
        }
        /* order and unnotified are set before park: they are seen here, or the kernel sees that
         * park is not 0 */
        prim_futex_wait(&k->park, 0);
        if (!__atomic_load_n(&k->order, __ATOMIC_ACQUIRE))
            __atomic_store_n(&k->park, 0, __ATOMIC_SEQ_CST);
    }
}

/* Mount r, which has come home without a slot: it acquires one by itself (carrier_migrate_home). */
static _Noreturn void mount_slotless(struct carrier *k, struct thread *r)
{
    prepare(r, r->slot, tsc());
    r->has_slot = false;
    mount(k, r);
    lissom_enter(r, NULL);
}

/* On k's own stack, after prev was left for good. */
static void loop_after_rest(struct carrier *k, struct thread *prev)
{
    __atomic_store_n(&k->current, NULL, __ATOMIC_RELAXED);
    lock_take(&sched.free_lock);
    struct thread *r = take_reserved(k);
    if (!r)
        free_push(k);
    lock_drop(&sched.free_lock);
    carrier_finish(prev);
    if (r)
        mount_slotless(k, r);
    carrier_loop(k);
}

static void leave(struct thread *t, void (*f)(struct carrier *, struct thread *))
{
    struct carrier *k = t->carrier;
    mounted(t, lissom_leave(t, k->stack, f, k));
}

/* Wake the thread that this carrier has granted a slot but not woken. */
static void flush(struct carrier *k)
{
    if (k->to_wake)
        ext_park(false, k->to_wake);
    k->to_wake = 0;
}

void carrier_rest(struct thread *t)
{
    t->carrier->handed_on = false;
    flush(t->carrier);
    leave(t, loop_after_rest);
}

bool carrier_sleep_attached(struct thread *t, const struct timespec *deadline, bool realtime)
{
    struct carrier *k = t->carrier;
    /* Park only behind a successor, and without a deadline: a CPU with nothing to run should sleep,
     * and only the kernel keeps the time. */
    bool parks = k->handed_on && !deadline && ext_is_there();
    k->handed_on = false;
    for (bool slept = false;;) {
        uint32_t a = ATTACHED;
        if (!parks)
            flush(k);
        if (!__atomic_compare_exchange_n(&t->attach, &a, parks ? PARKED : ASLEEP, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE) &&
            a == GRANTED) {
            flush(k);
            __atomic_store_n(&t->attach, ATTACHED, __ATOMIC_RELAXED);
            if (slept)
                contention_woke(t);
            return true;
        }
        /* A signal handler on this carrier sets pending_work, then changes ASLEEP back to
         * ATTACHED. */
        bool look = t->pending_work && t->interruptible;
        long r = 0;
        if (parks) {
            if (!look)
                ext_park(true, k->to_wake);
            else
                flush(k);
            k->to_wake = 0;
            parks = false;
            a = PARKED;
            __atomic_compare_exchange_n(&t->attach, &a, ASLEEP, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
            if (a == GRANTED)
                continue;
            look = t->pending_work && t->interruptible;
        }
        if (!look)
            r = prim_syscall6(SYS_futex, (long)&t->attach,
                              FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG |
                                  (realtime ? FUTEX_CLOCK_REALTIME : 0),
                              ASLEEP, (long)deadline, 0, FUTEX_BITSET_MATCH_ANY);
        slept = true;
        a = ASLEEP;
        if (look || r == -ETIMEDOUT) {
            if (__atomic_compare_exchange_n(&t->attach, &a, ATTACHED, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE) ||
                a == ATTACHED)
                return false;
        }
    }
}

/* --- going home ------------------------------------------------------------------------------- */

struct thread *carrier_take_reserved(struct thread *t)
{
    struct carrier *k = t->carrier;
    if (!carrier_is_reserved(t))
        return NULL;
    lock_take(&sched.free_lock);
    struct thread *r = take_reserved(k);
    lock_drop(&sched.free_lock);
    return r;
}

void carrier_put_back_reserved(struct thread *t, struct thread *r)
{
    lock_take(&sched.free_lock);
    reserve(t->carrier, r);
    lock_drop(&sched.free_lock);
}

/* On k's own stack: prev migrates home with its slot if its home is free, otherwise waits for
 * it. */
static void loop_after_migration(struct carrier *k, struct thread *prev)
{
    struct carrier *home = prev->home;
    struct slot *s = prev->slot;
    __atomic_store_n(&k->current, NULL, __ATOMIC_RELAXED);
    /* nobody else owns prev: no grant can be lost */
    __atomic_store_n(&prev->attach, DETACHED, __ATOMIC_RELEASE);
    lock_take(&sched.free_lock);
    struct thread *r = take_reserved(k);
    bool at_once = home->on_free;
    if (at_once)
        free_remove(home);
    else
        reserve(home, prev);
    if (!r)
        free_push(k);
    lock_drop(&sched.free_lock);
    if (at_once) {
        prepare(prev, s, tsc());
        order(home, prev, s);
    } else {
        monitor_kick();
        slot_pass_on(s);
    }
    if (r)
        mount_slotless(k, r);
    carrier_loop(k);
}

void carrier_migrate_home(struct thread *t)
{
    if (t->carrier == t->home)
        return;
    count(migrations_home);
    t->homing = true;
    leave(t, loop_after_migration);
    t->homing = false;
    if (!t->has_slot)
        slot_acquire(t);
}

bool carrier_preempt_reserved(void)
{
    bool any = false;
    lock_take(&sched.free_lock);
    for (struct carrier *k = sched.reserved_head; k; k = k->reserved_next) {
        any = true;
        if (k->reserved_seen)
            signals_preempt(k);
        k->reserved_seen = true;
    }
    lock_drop(&sched.free_lock);
    return any;
}
