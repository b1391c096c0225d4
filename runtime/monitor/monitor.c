/* SPDX-License-Identifier: MIT
 *
 * The monitor: a kernel thread of the runtime. It sleeps while no thread is ready, and scans the
 * slots once per slice while some are (monitor/scan.c).
 *
 * It also checks how many CPUs there are (monitor/limit.c), and changes the number of slots. So it
 * is started when a second slot is first used, and then wakes twenty times a second while two are.
 * Programs that never run two threads at a time have no monitor. It ends when only one thread is
 * left (docs/design/slots.md, The monitor).
 *
 * The monitor has no TLS and no handlers, and calls nothing of libc. All signals are blocked except
 * the faults of guarded loads.
 */
#include "cpus/cpus.h"
#include "cpus/others.h"
#include "events/events.h"
#include "monitor/domain.h"
#include "monitor/limit.h"
#include "monitor/lone.h"
#include "monitor/publish.h"
#include "monitor/scan.h"
#include "monitor/manager.h"
#include "monitor/monitor.h"
#include "monitor/neighbours.h"
#include "monitor/peers.h"
#include "omp/loops.h"
#include "options.h"
#include "prim/kernel_thread.h"
#include "prim/task.h"
#include "report.h"
#include "sched/actions.h"
#include "sched/bind.h"
#include "sched/contention.h"
#include "sched/ext.h"
#include "sched/nap.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slices.h"
#include "sched/slots.h"
#include "sched/timers.h"
#include "sched/waiting.h"
#include "spin/site.h"
#include "spin/spin.h"

#include <linux/close_range.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

enum {
    TICK_US = SLICE_US, /* shorter (spin_period_us) while threads are scanned for busy-waiting */
    /* ticks without a ready thread, before the monitor only checks the number of CPUs */
    QUIET_TICKS = 32,
    CPUS_US = 50000,  /* between two checks of the number of CPUs */
    DOZE_US = 6000,   /* between two such checks among other programs */
    ALONE_US = 20000, /* with one thread, before the monitor ends */
    STACK = 16384,
    SHORT_SLICE_NS = 100000, /* minimum of the kernel */
};

static char stack[STACK] __attribute__((aligned(64)));
static uint32_t alive;   /* the kernel clears it and wakes its waiters when the monitor has ended */
static uint32_t leaving; /* the monitor is asked to end */
/* Futex word. A thread that changes what the monitor has to check adds one, and the monitor does
 * not sleep. */
static uint32_t sleep_cuts;
/* The thread that made the monitor has a mask of its own. The monitor's mask should be that of all
 * threads. */
static bool other_mask;

/* Scan every slot's thread, whether others are ready or not. Returns true. */
static bool observe(void)
{
    for (uint32_t i = 0; i < sched.slots; i++)
        if (__atomic_load_n(&sched.slot[i].state, __ATOMIC_RELAXED) != SLOT_IDLE)
            scan_runner(&sched.slot[i]);
    return true;
}

static bool look(void)
{
    if (giving_up())
        return true;
    bool ready = sched.observe_spinning && !sched.traced && observe();
    uint64_t now = tsc();
    for (uint32_t i = 0; i < sched.slots; i++) {
        struct slot *s = &sched.slot[i];
        bool parked = __atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED);
        bool extra = __atomic_load_n(&s->overcommit, __ATOMIC_RELAXED);
        if (parked || extra)
            ready = true;
        if (__atomic_load_n(&s->ready_count, __ATOMIC_RELAXED) || extra ||
            waiting_any_over(s, now, false)) {
            ready = true;
            /* a napping thread is not blocked */
            if (!__atomic_load_n(&s->napping, __ATOMIC_RELAXED))
                scan_slot(s, now);
        }
        if (slot_ready_count(s) && !slot_is_kept(s) &&
            __atomic_load_n(&sched.idle_count, __ATOMIC_RELAXED))
            slots_look_for_idle(s); /* wakers do not while s is kept */
        s->monitor_seen = __atomic_load_n(&s->schedules, __ATOMIC_RELAXED);
    }
    if (events_watched() && __atomic_load_n(&sched.idle_count, __ATOMIC_RELAXED) < sched.slots) {
        ready = true; /* events may be there, and no other thread polls while all compute */
        if (events_due(now - TICK_US * sched.tsc_per_us))
            events_rouse();
    }
    if (lone_tick(now))
        ready = true;
    if (neighbours_tick(now))
        ready = true;
    if (loops_look(now))
        ready = true;
    if (carrier_preempt_reserved())
        ready = true;
    if (slots_vacate())
        ready = true;
    return ready;
}

/* Returns whether two threads may run. Only then can a lower number of CPUs make them too many. */
static bool anything_runs(void) { return !slots_one_is_busy(); }

/* Values of sched.monitor_word: AWAKE, or how the monitor sleeps. DOZING: until the next check of
 * the CPUs. ASLEEP_FOR_LONG: without such checks. A thread that makes a slot busy first counts it
 * and then reads the word. The monitor first writes ASLEEP_FOR_LONG and then reads the count. So
 * one of them sees what the other has written. */
enum { DOZING, AWAKE, ASLEEP_FOR_LONG };

static bool word_becomes(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&sched.monitor_word, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static bool is_started(void) { return __atomic_load_n(&sched.monitor_started, __ATOMIC_SEQ_CST); }

/* If the monitor sleeps for long, make it decide again how to sleep. */
static void stir(void)
{
    if (__atomic_load_n(&sched.monitor_word, __ATOMIC_SEQ_CST) == ASLEEP_FOR_LONG &&
        word_becomes(ASLEEP_FOR_LONG, DOZING))
        prim_futex_wake(&sched.monitor_word, 1);
}

void monitor_slot_busy(void)
{
    if (!anything_runs())
        return;
    if (is_started())
        stir();
    if (!is_started()) /* also if it has ended meanwhile */
        monitor_kick();
}

void monitor_one_is_left(void)
{
    if (is_started())
        stir();
}

static struct lock lifecycle; /* serialises start and end: one stack, one monitor */
static long tid;              /* of the monitor, also of one that is ending; under lifecycle */

static uint64_t share_after; /* tsc: when the share is checked next */

/* Returns how many slots there should be; 0: it is not time to check. */
static uint32_t slots_to_be(void)
{
    static uint64_t limit_after;
    static uint32_t limit;
    static struct beside_share share;
    uint64_t now = tsc();
    bool due = now >= limit_after, owed = peers_are_owed();
    bool changed = share.slots && neighbours_look(now, &share, cpus_may_be_throttled());
    if (!due && !changed && now < share_after && !owed)
        return 0;
    if (due) {
        limit = cpus_limit();
        actions_look();
        publish_limit(limit);
        bool was = sched.traced;
        sched.traced = task_is_traced((int32_t)prim_syscall3(SYS_gettid, 0, 0, 0));
        /* A breakpoint behind a site would redirect its jump. Once more after the debugger has
         * left: it may have put a jump back. */
        if (sched.traced || was)
            spin_sites_off();
        limit_after = now + CPUS_US * sched.tsc_per_us;
    }
    share = cpus_beside_others(cpus_share(limit), limit);
    uint32_t n = neighbours_slots(&share);
    share_after = now + (manager_is_there() ? TICK_US : peers_period_us()) * sched.tsc_per_us;
    if (due || n != sched.slots)
        cpus_settle(n, limit);
    return n;
}

static void look_at_cpus(void)
{
    static bool managed;
    uint32_t n = slots_to_be();
    bool resized = n && n != sched.slots;
    if (resized) {
        count(resizes);
        __atomic_store_n(&record->slots, n, __ATOMIC_RELAXED);
        slots_resize(n);
    }
    if (resized || managed != manager_decides()) {
        managed = manager_decides();
        loops_resized(managed);
    }
}

/* Sleep while *word == value, for at most `us` (0: for ever), and not beyond the first timer. Then
 * end the waits whose time is over. */
static void sleep_on(uint32_t *word, uint32_t value, uint64_t us)
{
    struct timers_look look = {us ? clock_ns(CLOCK_MONOTONIC) + us * 1000 : TIMERS_FOR_EVER,
                               TIMER_MONOTONIC};
    if (timers_in_use())
        look = timers_watch(look.ns);
    const struct timespec until = {.tv_sec = (time_t)(look.ns / 1000000000),
                                   .tv_nsec = (long)(look.ns % 1000000000)};
    int op = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
    if (look.clock == TIMER_REALTIME)
        op |= FUTEX_CLOCK_REALTIME;
    prim_syscall6(SYS_futex, (long)word, op, value, look.ns == TIMERS_FOR_EVER ? 0 : (long)&until,
                  0, FUTEX_BITSET_MATCH_ANY);
    timers_expire();
}

static bool is_alone(void) { return __atomic_load_n(&sched.threads, __ATOMIC_SEQ_CST) <= 1; }

/* Exit. A thread that starts or ends the monitor waits until this one is gone (join). */
static _Noreturn void leave(void)
{
    timers_watch(TIMERS_FOR_EVER);
    contention_can_ask(false);
    domain_begin(); /* another process will take the entry */
    cpus_leave();
    cpus_sentinel_ends();
    for (;;)
        prim_syscall3(SYS_exit, 0, 0, 0);
}

/* End the monitor if the process has one thread, after a long sleep: a program that counts its
 * kernel threads should find one. A thread in monitor_kick either sees that there is no monitor, or
 * is seen here (docs/model/alone.pml). */
static void end_alone(void)
{
    /* Timers first: a thread that arms one from now on calls monitor_kick. */
    if (timers_watch(TIMERS_FOR_EVER).ns != TIMERS_FOR_EVER || !is_alone() || giving_up() ||
        !lock_try(&lifecycle))
        return;
    __atomic_store_n(&sched.monitor_started, 0, __ATOMIC_SEQ_CST);
    bool ends = __atomic_load_n(&sched.monitor_word, __ATOMIC_SEQ_CST) == ASLEEP_FOR_LONG;
    if (!ends) {
        __atomic_store_n(&sched.monitor_started, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_word, AWAKE, __ATOMIC_SEQ_CST);
    }
    lock_drop(&lifecycle);
    if (ends)
        leave();
}

/* Sleep until a thread has work for the monitor or, if may_end, for ALONE_US. Returns true if the
 * only running thread is contended. */
static bool sleep_for_long(bool may_end)
{
    for (;;) {
        uint32_t us = may_end ? ALONE_US : lone_sleep_us();
        sleep_on(&sched.monitor_word, ASLEEP_FOR_LONG, us);
        if (may_end || __atomic_load_n(&leaving, __ATOMIC_ACQUIRE) ||
            __atomic_load_n(&sched.monitor_word, __ATOMIC_SEQ_CST) != ASLEEP_FOR_LONG)
            return false;
        if (lone_look()) {
            contention_of_others(tsc());
            return true;
        }
    }
}

/* Sleep until threads are ready, or the monitor is asked to end. Checks the CPUs meanwhile. */
static void sleep_lightly(void)
{
    bool tried = false;
    while (__atomic_load_n(&sched.monitor_word, __ATOMIC_SEQ_CST) != AWAKE &&
           !__atomic_load_n(&leaving, __ATOMIC_ACQUIRE)) {
        look_at_cpus();
        publish_now();
        bool scans = sched.detect_spinning && neighbours_any() && anything_runs();
        if (slots_vacate() || scans)
            return;
        if (!anything_runs())
            cpus_leave(); /* one thread runs at most: the kernel may move it */
        if (!word_becomes(DOZING, ASLEEP_FOR_LONG))
            continue;
        if (anything_runs() && word_becomes(ASLEEP_FOR_LONG, DOZING)) {
            sleep_on(&sched.monitor_word, DOZING,
                     peers_any() || manager_is_there() || neighbours_any() ? DOZE_US : CPUS_US);
        } else {
            bool may_end = is_alone() && !tried;
            peers_asleep();
            publish_asleep();
            bool contended = sleep_for_long(may_end);
            share_after = 0;
            if (contended)
                return;
            if (may_end)
                end_alone();
            tried = may_end;
        }
        word_becomes(ASLEEP_FOR_LONG, DOZING);
    }
}

static uint32_t tick_us(void)
{
    uint32_t lone = lone_tick_us();
    if (lone && !sched.observe_spinning)
        return lone;
    bool often = sched.detect_spinning && !__atomic_load_n(&sched.naps, __ATOMIC_RELAXED);
    uint32_t us = often || sched.observe_spinning ? spin_period_us() : TICK_US;
    uint32_t owed = peers_may_be_owed_us();
    if (owed && owed < us)
        return owed;
    bool rarely = us >= TICK_US && peers_any() && slices_only_compute();
    return rarely || us > peers_period_us() ? peers_period_us() : us;
}

/* Sleep for a tick. While slots nap, check meanwhile what their threads wait for. */
static void sleep_for_a_tick(uint32_t seen)
{
    uint64_t left = tick_us(), pause;
    while ((pause = naps_look()) && pause < left &&
           __atomic_load_n(&sleep_cuts, __ATOMIC_RELAXED) == seen) {
        sleep_on(&sleep_cuts, seen, pause);
        left -= pause;
    }
    sleep_on(&sleep_cuts, seen, left);
}

/* Tick after giving up, which only releases threads: docs/design/lifecycle.md, Giving up. */
static void release_tick(uint32_t seen)
{
    if (release_others())
        __atomic_store_n(&leaving, 1, __ATOMIC_RELEASE);
    else
        sleep_on(&sleep_cuts, seen, TICK_US);
}

/* If a copy of a message queue's descriptor is closed, the process's mq_notify(3) ends. So the
 * monitor gets a table of its own only before the first mq_notify. It sets `unshares` and then
 * reads `notifies`. monitor_before_mq_notify sets `notifies`, and waits while `unshares` is set. */
static uint32_t unshares, notifies;

void monitor_before_mq_notify(void)
{
    const struct timespec moment = {.tv_nsec = 100000};
    __atomic_store_n(&notifies, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&unshares, __ATOMIC_SEQ_CST))
        prim_syscall4(SYS_futex, &unshares, PRIM_FUTEX_WAIT_PRIVATE, 1, &moment);
}

/* Give the calling thread an empty descriptor table of its own. Files that it opens use no
 * descriptors of the program, and it keeps none of the program's files open. Returns false if that
 * is forbidden or would be wrong. */
static bool take_own_descriptors(void)
{
    static bool is_told;
    const char *why = NULL;
    __atomic_store_n(&unshares, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&notifies, __ATOMIC_SEQ_CST))
        why = "the program has called mq_notify";
    else if (prim_syscall3(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE))
        why = "close_range is forbidden, or Linux is older than 5.9";
    __atomic_store_n(&unshares, 0, __ATOMIC_SEQ_CST);
    if (why && options.verbose && !is_told)
        report("no sharing of CPUs, manager and live statistics: %s", why);
    is_told = true;
    return !why;
}

/* Ask the kernel for short slices. The monitor runs for some us, and should do so when it wakes,
 * not when the slices of others are over. From Linux 6.12, threads that ask for short slices run
 * first; older kernels ignore the request. */
static void ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr; /* sched_attr of sched_setattr(2) */
    enum { OTHER = 0 };
    if (prim_syscall4(SYS_sched_getattr, 0, &attr, sizeof attr, 0) || attr.policy != OTHER)
        return;
    attr.runtime = SHORT_SLICE_NS;
    prim_syscall3(SYS_sched_setattr, 0, &attr, 0);
}

static _Noreturn void monitor(void)
{
    uint32_t quiet = 0;
    bool restored = false; /* the program's code, after giving up */
    ask_for_short_slices();
    if (other_mask)
        cpus_unbind_self(); /* at once: a mask that is set from now on must hold */
    /* Unblock the faults of guarded loads: the program may have unmapped words that parked threads
     * wait for. */
    uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
    prim_syscall4(SYS_rt_sigprocmask, 1 /* SIG_UNBLOCK */, &faults, 0, 8);
    bool own_descriptors = take_own_descriptors();
    peers_begin(own_descriptors);
    manager_begin(own_descriptors);
    publish_begin(own_descriptors);
    contention_can_ask(own_descriptors);
    lone_begin(own_descriptors);
    neighbours_begin(own_descriptors);
    for (;;) {
        /* read first, so that later changes cut the sleep */
        uint32_t seen = __atomic_load_n(&sleep_cuts, __ATOMIC_SEQ_CST);
        if (giving_up() && !restored) {
            restored = true;
            spin_sites_off(); /* nobody will, once this thread has ended */
        }
        if (__atomic_load_n(&leaving, __ATOMIC_ACQUIRE))
            leave();
        if (giving_up()) {
            release_tick(seen);
            continue;
        }
        spin_sites_serve();
        contention_ask();
        if (own_descriptors)
            ext_ask();
        look_at_cpus();
        publish_now();
        sleep_for_a_tick(seen);
        if (look()) {
            quiet = 0;
        } else if (++quiet >= QUIET_TICKS) {
            quiet = 0;
            spin_sites_off();
            __atomic_store_n(&sched.monitor_word, DOZING, __ATOMIC_SEQ_CST);
            if (look() || __atomic_load_n(&leaving, __ATOMIC_ACQUIRE)) {
                __atomic_store_n(&sched.monitor_word, AWAKE, __ATOMIC_SEQ_CST);
                continue;
            }
            sleep_lightly();
            __atomic_store_n(&sched.monitor_word, AWAKE, __ATOMIC_SEQ_CST);
        }
    }
}

void monitor_after_fork(void)
{
    tid = 0;
    manager_after_fork();
    domain_after_fork();
    contention_can_ask(false);
    others_after_fork();
    lifecycle.word = 0;
    sched.monitor_started = sched.monitor_word = alive = leaving = unshares = notifies = 0;
    timers_after_fork();
}

static void cut_sleep(void)
{
    __atomic_fetch_add(&sleep_cuts, 1, __ATOMIC_SEQ_CST);
    prim_futex_wake(&sleep_cuts, 1);
}

/* Wait until no monitor has the stack. Pre: caller holds lifecycle; the monitor has been asked to
 * end, or ends by itself. */
static void join(void)
{
    if (tid > 0)
        prim_kernel_thread_join(&alive, tid);
    tid = 0;
}

/* End the monitor, if there is one, and wait until it is gone. Pre: caller holds lifecycle. */
static void end(void)
{
    if (sched.monitor_started) {
        __atomic_store_n(&leaving, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_word, AWAKE, __ATOMIC_SEQ_CST);
        prim_futex_wake(&sched.monitor_word, 1);
        cut_sleep();
        join();
        __atomic_store_n(&leaving, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_started, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_word, DOZING, __ATOMIC_SEQ_CST);
    }
    join();
}

static void start(void)
{
    join();
    /* The child gets this stack and never returns. It has no TLS, and glibc does not know it. */
    alive = 1;
    /* thread whose kernel thread this is */
    const struct thread *of = lissom_self ? lissom_self->carrier->home_thread : NULL;
    other_mask = of && (of->bound || of->own_affinity);
    /* Set before its first instruction, because the monitor calls monitor_kick, too. If it took
     * `lifecycle` there, it would wait for the thread that ends it, and that thread for the
     * monitor. */
    __atomic_store_n(&sched.monitor_started, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&sched.monitor_word, AWAKE, __ATOMIC_SEQ_CST);
    uint64_t mask = signals_block_all();
    tid = prim_kernel_thread(monitor, stack + STACK - 64, &alive);
    signals_set_mask(mask);
    if (tid < 0) { /* the kernel has no thread to give: retried at the next monitor_kick */
        alive = 0;
        __atomic_store_n(&sched.monitor_started, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_word, DOZING, __ATOMIC_SEQ_CST);
    }
}

/* Wake the monitor. Returns true if there is one, and it is awake. It may be ending: then the
 * thread that ends it checks afterwards what is ready. */
static bool kick_started(void)
{
    if (!is_started())
        return false;
    if (__atomic_exchange_n(&sched.monitor_word, AWAKE, __ATOMIC_SEQ_CST) != AWAKE)
        prim_futex_wake(&sched.monitor_word, 1);
    if (is_started())
        return true;
    /* It has ended meanwhile, and the word would say for good that one is awake. If another one has
     * started since, it continues, and is woken once more. */
    word_becomes(AWAKE, DOZING);
    return false;
}

void monitor_kick_started(void) { kick_started(); }

void monitor_kick(void)
{
    if (__atomic_load_n(&sched.monitor_word, __ATOMIC_SEQ_CST) == AWAKE)
        return;
    if (kick_started())
        return;
    lock_take(&lifecycle);
    if (!sched.monitor_started)
        start();
    else
        kick_started(); /* the first call may have reset the word after another thread had set it */
    bool none = !sched.monitor_started;
    lock_drop(&lifecycle);
    if (none)
        timers_abandon();
}

void monitor_look_again(void)
{
    cut_sleep();
    monitor_kick();
}

void monitor_end(void)
{
    lock_take(&lifecycle);
    end();
    lock_drop(&lifecycle);
}

void monitor_restart(void)
{
    lock_take(&lifecycle);
    end();
    lock_drop(&lifecycle);
    if (slots_anything_ready() || __atomic_load_n(&sched.reserved_head, __ATOMIC_RELAXED) ||
        timers_any())
        monitor_kick();
}
