/* SPDX-License-Identifier: MIT
 *
 * Virtual waits for events. docs/design/event-loops.md has the protocol, and why no thread is left
 * behind; docs/model/events.pml checks it.
 *
 * An epoll instance of the runtime holds those of the waiting threads, each armed for one event
 * (EPOLLONESHOT) when its thread begins to wait. A reported event may be stale, or its thread may
 * have been notified already. That thread then checks its own instance needlessly. An event that is
 * not reported is the mistake that must not be made.
 */
#include "events/events.h"
#include "futex/futex.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slots.h"
#include "sched/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum {
    DESCRIPTORS = 4096, /* threads with higher ones wait in the kernel */
    /* lowest number of the runtime's descriptor, out of the way of the program's */
    HIGH = 1000,
    SPARE = 24, /* its distance from the limit of descriptors, if that is low */
    LOW = 64,   /* smallest number that it may have: programs rely on getting the lowest ones */
    NOTIFIED_AT_ONCE = 16,
    POLL_US = 50, /* between two polls while all slots are busy */
};

static int instance = -1; /* the runtime's epoll instance; created when first needed */
static bool off;
static uint32_t polling;   /* 1: a thread polls */
static uint64_t polled_at; /* tsc; a guess */
/* of all below; taken before a bucket's, and not held while a thread is made ready */
static struct lock lock;
/* enrolled threads, by the number of their instance */
static struct thread *watcher[DESCRIPTORS];
static struct thread *enrolled_head, *enrolled_tail; /* list of them, by events_next */
static struct thread *leading; /* the enrolled thread that sleeps in the kernel, or is about to */

/* --- waiting threads -------------------------------------------------------------------------- */

static void append(struct thread *t)
{
    t->events_next = NULL;
    if (enrolled_tail)
        enrolled_tail->events_next = t;
    else
        enrolled_head = t;
    enrolled_tail = t;
}

static void take_out(struct thread *t)
{
    struct thread *before = NULL;
    for (struct thread *w = enrolled_head; w != t; w = w->events_next)
        before = w;
    if (before)
        before->events_next = t->events_next;
    else
        enrolled_head = t->events_next;
    if (enrolled_tail == t)
        enrolled_tail = before;
}

static long arm(long descriptor)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = (uint64_t)descriptor};
    long r = prim_syscall4(SYS_epoll_ctl, instance, EPOLL_CTL_MOD, descriptor, &e);
    return r == -ENOENT ? prim_syscall4(SYS_epoll_ctl, instance, EPOLL_CTL_ADD, descriptor, &e) : r;
}

/* Enroll t, so that a thread that learns of events of this instance notifies t. Returns false if
 * another thread is enrolled for the instance, or virtual waits have ended. */
static bool enroll(struct thread *t, long descriptor, bool leads)
{
    __atomic_store_n(&t->events_notified, 0, __ATOMIC_RELAXED);
    lock_take(&lock);
    bool mine = !watcher[descriptor] && !off;
    if (mine) {
        watcher[descriptor] = t;
        append(t);
        if (leads)
            leading = t;
    }
    lock_drop(&lock);
    return mine;
}

static void withdraw(struct thread *t, long descriptor)
{
    lock_take(&lock);
    watcher[descriptor] = NULL;
    take_out(t);
    if (leading == t)
        leading = NULL;
    lock_drop(&lock);
}

static bool prepare(struct thread *t, long descriptor, bool leads)
{
    if (!enroll(t, descriptor, leads))
        return false;
    if (arm(descriptor) == 0)
        return true;
    withdraw(t, descriptor); /* instances nested too deep, or no memory */
    return false;
}

/* Uncount t, which has been notified or is leaving: it checks for itself, and does not rely on
 * other threads. Otherwise, until t runs again, a slot that becomes idle could poll for it for
 * ever, on the very kernel thread that is to run t. Pre: the lock, unless the caller is t: without
 * it this may be t's next wait. */
static void uncount(struct thread *t)
{
    if (__atomic_exchange_n(&t->events_counted, 0, __ATOMIC_SEQ_CST))
        __atomic_fetch_sub(&sched.event_watchers, 1, __ATOMIC_SEQ_CST);
}

/* Notify t. Pre: the lock. */
static void set_notified(struct thread *t)
{
    __atomic_store_n(&t->events_notified, 1, __ATOMIC_SEQ_CST);
    uncount(t);
}

/* Notify the thread that waits for `descriptor`. by: the caller, if it is the leader. */
static void notify(uint64_t descriptor, const struct thread *by)
{
    struct thread *t;
    if (descriptor >= DESCRIPTORS)
        return;
    lock_take(&lock);
    t = watcher[descriptor];
    if (t)
        set_notified(t);
    bool sleeps = t && leading == t && by != t;
    lock_drop(&lock);
    if (sleeps)
        arm((long)descriptor); /* only the event itself wakes the leader in the kernel: put it back,
                                * since the poll took it */
    else if (t)                /* it may have left and come again: a spurious wake-up */
        futex_wake_inside(&t->events_notified);
}

static void notify_all(const struct epoll_event *e, long n, const struct thread *by)
{
    for (long i = 0; i < n; i++)
        notify(e[i].data.u64, by);
}

/* --- polling ---------------------------------------------------------------------------------- */

bool events_due(uint64_t now)
{
    return now - __atomic_load_n(&polled_at, __ATOMIC_RELAXED) > POLL_US * sched.tsc_per_us;
}

/* Only one caller polls at a time, since making threads ready may lead here again. Another caller
 * that has nothing to run rouses a waiting thread. */
void events_poll(void)
{
    struct epoll_event e[NOTIFIED_AT_ONCE];
    if (__atomic_exchange_n(&polling, 1, __ATOMIC_ACQUIRE))
        return;
    long n = prim_syscall4(SYS_epoll_wait, instance, e, NOTIFIED_AT_ONCE, 0);
    __atomic_store_n(&polled_at, tsc(), __ATOMIC_RELAXED);
    notify_all(e, n, NULL);
    __atomic_store_n(&polling, 0, __ATOMIC_RELEASE);
}

/* Wake the home thread of t's carrier, if it waits for events. It can sleep in the kernel for all
 * on its own kernel thread, unlike t, which is away from home. Returns whether it was woken. */
static bool rouse_at_home(const struct thread *t)
{
    struct thread *other = t->carrier->home_thread;
    if (!events_watched())
        return false;
    /* it may wait for something else: then this has no effect */
    __atomic_store_n(&other->events_notified, 1, __ATOMIC_SEQ_CST);
    return futex_wake_inside(&other->events_notified);
}

void events_rouse(void)
{
    for (uint32_t i = __atomic_load_n(&sched.event_watchers, __ATOMIC_SEQ_CST); i > 0; i--) {
        lock_take(&lock);
        struct thread *t = enrolled_head;
        if (t) {
            take_out(t);
            append(t); /* take another one next time */
            set_notified(t);
        }
        lock_drop(&lock);
        __atomic_store_n(&polled_at, tsc(), __ATOMIC_RELAXED);
        if (!t || futex_wake_inside(&t->events_notified))
            return;
    }
}

/* --- the instance ----------------------------------------------------------------------------- */

/* Create the instance. Returns false if that is impossible. Pre: the lock. */
static bool make_instance(void)
{
    struct rlimit limit = {HIGH + SPARE, 0};
    prim_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
    long high = limit.rlim_cur < HIGH + SPARE ? (long)limit.rlim_cur - SPARE : HIGH;
    if (high < LOW)
        return false;
    long made = prim_syscall3(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0);
    if (made < 0)
        return false;
    instance = (int)prim_syscall3(SYS_fcntl, made, F_DUPFD_CLOEXEC, high);
    prim_syscall3(SYS_close, made, 0, 0);
    if (instance < 0)
        return false;
    on_watch_descriptors();
    return true;
}

static bool usable(void)
{
    if (__atomic_load_n(&off, __ATOMIC_RELAXED) || sched.native_waits)
        return false;
    if (__atomic_load_n(&instance, __ATOMIC_ACQUIRE) >= 0)
        return true;
    lock_take(&lock);
    if (instance < 0 && !off)
        off = !make_instance();
    lock_drop(&lock);
    return !off;
}

void events_give_up(void)
{
    __atomic_store_n(&off, true, __ATOMIC_SEQ_CST);
    /* Threads that have not checked yet see `off` at the next check of their own instance; no
     * thread enrolls any more. */
    for (uint32_t i = __atomic_load_n(&sched.event_watchers, __ATOMIC_SEQ_CST); i > 0; i--)
        events_rouse();
}

static bool is_ours(long descriptor) { return (int)descriptor >= 0 && (int)descriptor == instance; }

bool events_guard_descriptor(struct user_registers *r)
{
    switch (r->rax) {
    case SYS_close:
        if (!is_ours(r->rdi))
            return false;
        r->rax = -EBADF; /* the program has no descriptor of this number */
        return true;
    case SYS_dup2:
    case SYS_dup3:
        if (is_ours(r->rsi) && !is_ours(r->rdi))
            events_give_up();
        return false;
    default: { /* close_range(2) */
        uint32_t first = (uint32_t)r->rdi, last = (uint32_t)r->rsi, ours = (uint32_t)instance;
        if (instance < 0 || ours < first || ours > last)
            return false;
        if ((r->rdx & CLOSE_RANGE_UNSHARE) || (r->rdx & ~(long)CLOSE_RANGE_CLOEXEC)) {
            events_give_up();
            return false;
        }
        long below = ours > first ? prim_syscall3(SYS_close_range, first, ours - 1, r->rdx) : 0;
        long above = ours < last ? prim_syscall3(SYS_close_range, ours + 1, last, r->rdx) : 0;
        r->rax = below < 0 ? below : above;
        return true;
    }
    }
}

/* Close the instance in a fork's child. It is the parent's, which would miss events that the child
 * takes from it. */
void events_after_fork(void)
{
    lock.word = 0;
    if (instance < 0)
        return;
    prim_syscall3(SYS_close, instance, 0, 0);
    instance = -1;
    sched.event_watchers = sched.event_leader = polling = 0;
    leading = NULL;
    enrolled_head = enrolled_tail = NULL;
    __builtin_memset(watcher, 0, sizeof watcher);
}

/* --- the wait --------------------------------------------------------------------------------- */

/* Return the time left in ms, rounded up, as epoll_wait(2) takes it; -1: no limit. */
static int left(const struct deadline *deadline)
{
    if (!deadline)
        return -1;
    int64_t ns = (int64_t)(deadline_ns(deadline) - clock_ns(CLOCK_MONOTONIC));
    return ns <= 0 ? 0 : (int)((ns + 999999) / 1000000);
}

/* Wait in the kernel for all enrolled threads. t holds a slot on return. Pre: t has made itself the
 * leader, is at home, enrolled and armed, and holds its slot. */
static void lead(struct thread *t, const struct deadline *deadline)
{
    struct epoll_event e[NOTIFIED_AT_ONCE];
    slot_release(t);
    long n = lissom_event_sleep(instance, e, NOTIFIED_AT_ONCE, left(deadline), &t->pending_work);
    /* first: threads made ready then queue behind t, and no other kernel thread is woken */
    bool has = slot_try_acquire(t);
    notify_all(e, n, t);
    if (!has)
        slot_acquire(t);
    __atomic_store_n(&sched.event_leader, 0, __ATOMIC_SEQ_CST);
    if (!events_watched())
        return;
    monitor_kick();
    struct slot *idle = slots_claim_idle(t->slot);
    if (idle) {
        events_rouse();
        slot_pass_on(idle);
    }
}

/* Wait in user space. Returns 0, -ETIMEDOUT, or -EINTR if a signal for t is pending. */
static long follow(struct thread *t, const struct deadline *deadline)
{
    __atomic_fetch_add(&sched.event_watchers, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&t->events_counted, 1, __ATOMIC_SEQ_CST);
    monitor_kick();
    count_on(t->slot, event_waits, 1);
    long n = futex_wait_inside(t, &t->events_notified, 0, deadline);
    uncount(t);
    return n;
}

/* Wait in the kernel for t only, as natively: no other thread relies on t. Returns the result of
 * the call. */
static long alone(struct thread *t, const struct user_registers *r, const struct deadline *deadline)
{
    slot_release(t);
    long n = lissom_event_sleep((int)r->rdi, (struct epoll_event *)r->rsi, (int)r->rdx,
                                left(deadline), &t->pending_work);
    slot_acquire(t);
    return n;
}

static bool become_leader(void)
{
    uint32_t none = 0;
    return __atomic_load_n(&sched.event_watchers, __ATOMIC_SEQ_CST) &&
           __atomic_compare_exchange_n(&sched.event_leader, &none, 1, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static bool others_ready(void)
{
    if (slots_anything_to_take())
        return true;
    if (events_watched())
        events_poll();
    return slots_anything_to_take();
}

static long finish(struct user_registers *r, long result)
{
    r->rax = result;
    return ACTION_RETURN;
}

long events_wait(struct thread *t, struct user_registers *r)
{
    long descriptor = (int)r->rdi;
    struct deadline limit, *deadline = (int)r->r10 > 0 ? &limit : NULL;
    if (descriptor < 0 || descriptor >= DESCRIPTORS || is_ours(descriptor) || (int)r->rdx <= 0 ||
        !usable())
        return EVENTS_NOT;
    if (deadline) {
        deadline_after((uint64_t)(int)r->r10 * 1000000, deadline);
        deadline_settle(t, deadline);
    }
    for (;;) {
        bool native = giving_up(),
             ready = !native &&
                     (others_ready() || __atomic_load_n(&sched.event_leader, __ATOMIC_RELAXED)),
             leads = false;
        long n = 0, events = 0;
        if (!native && !ready && t->carrier != t->home && rouse_at_home(t))
            ready = true;
        if (!ready && t->carrier != t->home) { /* only at home it may sleep in the kernel */
            thread_learn(t, true);
            carrier_migrate_home(t);
            continue;
        }
        if (!ready && !native)
            leads = become_leader();
        if ((ready || leads) && prepare(t, descriptor, leads)) {
            if (!deadline)
                thread_learn(t, false);
            if (leads)
                lead(t, deadline);
            else
                n = follow(t, deadline);
            withdraw(t, descriptor);
        } else {
            if (leads)
                __atomic_store_n(&sched.event_leader, 0, __ATOMIC_SEQ_CST);
            carrier_migrate_home(t);
            events = alone(t, r, deadline);
        }
        if (!events || events == -EINTR)
            events = prim_syscall4(SYS_epoll_wait, descriptor, r->rsi, r->rdx, 0);
        if (events && events != -EINTR)
            return finish(r, events);
        if (n == -EINTR || (t->pending_work && signals_notify_home(t))) {
            r->rax = -EINTR;
            return signals_end_wait(t, r, true);
        }
        if (n == -ETIMEDOUT || (deadline && left(deadline) == 0))
            return finish(r, 0);
    }
}
