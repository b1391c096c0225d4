/* SPDX-License-Identifier: MIT
 *
 * The protocol is in docs/design/malleable-openmp.md, with the same names; docs/model/omp.pml
 * checks it.
 *
 * `asks`, `got` and `leaves` run as code of the program: its handlers may interrupt and even
 * abandon them. Everything that takes the runtime's locks is done inside the runtime, by
 * loops_call.
 */
#include "omp/loops.h"
#include "futex/futex.h"
#include "sched/contention.h"
#include "sched/hooks.h"
#include "sched/signals.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

enum {
    LOOPS = 256,
    YOUNG_US = 500, /* no thread waits in a younger loop, which may end soon */
    /* time without a request before a waiter is released: a thread may wait for its work */
    STILL_US = 10000,
    /* limit of that time where chunks are long: there it is twice the longest recent gap */
    STILL_MAX_US = 1000000,
    LOOKS = 64,     /* maximum number of slots to check: 0.3 us each */
    IDLE_US = 3000, /* period over which the use of the CPUs is measured */
};

struct loop {
    int32_t working; /* threads that have a chunk and are not blocked */
    uint32_t word;   /* futex: changes when waiters are released */
    uint32_t waiters;
    uint64_t began; /* tsc: when the first thread began to work */
    /* Monitor only: */
    /* tsc: the last check; the last new request for a chunk; the last release of a waiter */
    uint64_t looked, moved, roused;
    uint64_t longest; /* tsc: longest recent time between two chunks */
    uint32_t chunks, chunks_now;
} __attribute__((aligned(128)));

static struct loop loops[LOOPS] __attribute__((aligned(4096)));
_Static_assert(sizeof loops % 4096 == 0, "loops_init wipes whole pages");
static bool wiped;       /* the kernel wipes `loops` in children */
static uint32_t waiting; /* number of waiting threads, in all loops */
static uint32_t initial; /* active threads until a manager decides; 0: one per slot */
static bool managed;
static bool shaken;        /* for tests: the target changes at every request */
static int32_t goal;       /* target: number of threads to work on a loop */
int32_t lissom_omp_target; /* `goal`, for entry.S; -1: call the runtime each time */
_Static_assert(offsetof(struct loop, working) == LOOP_WORKING, "offsets.h");

static void set_target(int32_t n)
{
    __atomic_store_n(&goal, n, __ATOMIC_SEQ_CST);
    __atomic_store_n(&lissom_omp_target, shaken ? -1 : n, __ATOMIC_SEQ_CST);
}

static void set_target_by_slots(void)
{
    uint32_t n = slots_open(), active = __atomic_load_n(&initial, __ATOMIC_SEQ_CST);
    bool bounded = active && active < n && !__atomic_load_n(&managed, __ATOMIC_SEQ_CST);
    set_target((int32_t)(bounded ? active : n));
}

void loops_init(uint32_t n, bool shake)
{
    shaken = shake;
    wiped = prim_wipe_on_fork(loops, sizeof loops);
    loops_set_initial(n);
}

void loops_set_initial(uint32_t n)
{
    __atomic_store_n(&initial, n, __ATOMIC_SEQ_CST);
    set_target_by_slots();
}

void loops_resized(bool is_managed)
{
    __atomic_store_n(&managed, is_managed, __ATOMIC_SEQ_CST);
    set_target_by_slots();
}

static void shake(void)
{
    uint64_t x = tsc() * 0x9e3779b97f4a7c15ull;
    set_target((int32_t)(1 + (x >> 40) % (2 * slots_open() + 2)));
}

static int32_t target(void) { return __atomic_load_n(&goal, __ATOMIC_RELAXED); }

static struct loop *loop_from(uintptr_t caller)
{
    return &loops[(caller * 0x9e3779b97f4a7c15ull) >> 56];
}
static int32_t working(const struct loop *l)
{
    return __atomic_load_n(&l->working, __ATOMIC_SEQ_CST);
}
static uint32_t waiters(const struct loop *l)
{
    return __atomic_load_n(&l->waiters, __ATOMIC_SEQ_CST);
}

/* --- inside the runtime ----------------------------------------------------------------------- */

/* Release n waiters. Pre: inside the runtime, or the monitor. */
static void let_go(struct loop *l, int n)
{
    __atomic_fetch_add(&l->word, 1, __ATOMIC_SEQ_CST);
    futex_wake_some_inside(&l->word, n);
}

/* Wait until released, unless fewer threads work than the target. Returns -EINTR if a signal for t
 * is pending. */
static long wait(struct thread *t, struct loop *l)
{
    long n = 0;
    uint32_t word = __atomic_load_n(&l->word, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&l->waiters, 1, __ATOMIC_SEQ_CST);
    if (working(l) >= target()) {
        __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
        monitor_kick();
        count(loop_waits);
        n = futex_wait_inside(t, &l->word, word, NULL);
        __atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_fetch_sub(&l->waiters, 1, __ATOMIC_SEQ_CST);
    return n;
}

enum { CALL_WAIT, CALL_LET_GO };

/* Enter the runtime through lissom_omp_site, and call loops_call (entry.S). */
void lissom_omp_call(struct loop *l, long what, long n);

long loops_call(struct thread *t, struct user_registers *r)
{
    struct loop *l = (struct loop *)r->rdi;
    if (r->rsi == CALL_LET_GO) {
        let_go(l, (int)r->rdx);
    } else if (!sched.native_waits && wait(t, l) == -EINTR) {
        return signals_end_wait(t, r, true);
    }
    return ACTION_RETURN;
}

void loops_blocks(struct thread *t)
{
    struct loop *l = t->loop;
    t->loop_blocked = true;
    __atomic_fetch_sub(&l->working, 1, __ATOMIC_SEQ_CST);
    if (waiters(l))
        let_go(l, 1);
}

void loops_goes_on(struct thread *t)
{
    t->loop_blocked = false;
    if (t->at_work)
        __atomic_fetch_add(&t->loop->working, 1, __ATOMIC_SEQ_CST);
}

static void stop_work(struct thread *t)
{
    t->at_work = false;
    if (t->loop_blocked)
        t->loop_blocked = false; /* t is not counted: a handler ran during a blocking call */
    else
        __atomic_fetch_sub(&t->loop->working, 1, __ATOMIC_SEQ_CST);
}

void loops_thread_ends(struct thread *t)
{
    struct loop *l = t->loop;
    stop_work(t);
    t->loop = NULL;
    if (waiters(l))
        let_go(l, 1);
}

void loops_after_fork(struct thread *t)
{
    if (!wiped)
        __builtin_memset(loops, 0, sizeof loops);
    waiting = 0;
    t->loop = NULL;
    t->at_work = t->loop_blocked = false;
}

/* --- the program's calls ---------------------------------------------------------------------- */

static bool young(const struct loop *l)
{
    return !shaken &&
           tsc() - __atomic_load_n(&l->began, __ATOMIC_RELAXED) < YOUNG_US * sched.tsc_per_us;
}

void loop_asks(struct thread *t, uintptr_t caller)
{
    struct loop *l = loop_from(caller);
    t->loop = l;
    if (shaken)
        shake();
    if (working(l) >= target() && !young(l))
        lissom_omp_call(l, CALL_WAIT, 0);
}

/* Stop one of too many working threads, but never leave fewer than the target. Returns whether the
 * caller is to stop. */
static bool one_less(struct loop *l)
{
    int32_t n = working(l);
    while (n > target())
        if (__atomic_compare_exchange_n(&l->working, &n, n - 1, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            return true;
    return false;
}

void loop_asks_again(struct thread *t)
{
    struct loop *l = t->loop;
    t->chunks++;
    if (shaken)
        shake();
    int32_t n = __atomic_load_n(&l->working, __ATOMIC_RELAXED), want = target();
    if (n == want)
        return;
    if (n < want) {
        if (waiters(l))
            lissom_omp_call(l, CALL_LET_GO, want - n);
    } else if (!young(l) && one_less(l)) {
        t->at_work = false;
        lissom_omp_call(l, CALL_WAIT, 0);
    }
}

static void begin_work(struct thread *t)
{
    struct loop *l = t->loop;
    t->at_work = true;
    if (__atomic_fetch_add(&l->working, 1, __ATOMIC_SEQ_CST) <= 0)
        __atomic_store_n(&l->began, tsc(), __ATOMIC_RELAXED);
}

void loop_leaves(struct thread *t)
{
    struct loop *l = t->loop;
    if (!l)
        return;
    if (t->at_work)
        stop_work(t);
    t->loop = NULL;
    if (waiters(l))
        lissom_omp_call(l, CALL_LET_GO, INT_MAX);
}

void loop_got(struct thread *t, bool chunk)
{
    if (!chunk)
        loop_leaves(t);
    else if (t->loop && !t->at_work)
        begin_work(t);
}

/* --- the monitor's checks --------------------------------------------------------------------- */

static void add_chunks(struct thread *t)
{
    struct loop *l = __atomic_load_n(&t->loop, __ATOMIC_RELAXED);
    if (l)
        l->chunks_now += __atomic_load_n(&t->chunks, __ATOMIC_RELAXED);
}

/* Thread that ran each slot at the last check, and the CPU time of its kernel thread. The process's
 * clock is too coarse: for threads on other CPUs than the caller's it counts whole ticks of the
 * kernel (4 ms). By that clock, one of two busy CPUs looked idle at every fourth check. */
static struct {
    int32_t tid;
    uint64_t ns;
} ran[LOOKS];

/* Returns for how many of `elapsed` ns nothing ran on slot i, as far as is known. */
static uint64_t idle_time(uint32_t i, uint64_t elapsed)
{
    const struct slot *s = &sched.slot[i];
    const struct thread *t = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    bool is_idle = __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SLOT_IDLE;
    int32_t tid = t && !is_idle ? t->carrier->tid : 0, before = ran[i].tid;
    uint64_t ns = tid ? clock_ns(clock_of_thread(tid)) : 0, used = ns - ran[i].ns;
    ran[i].tid = tid;
    ran[i].ns = ns;
    if (is_idle)
        return elapsed;
    return tid && tid == before && used < elapsed &&
                   !__atomic_load_n(&s->overcommit, __ATOMIC_RELAXED)
               ? elapsed - used
               : 0;
}

/* Returns whether about one CPU was idle since the last check: then a thread with a chunk is
 * blocked in a way that the runtime does not know. */
static bool cpu_idle(uint64_t now)
{
    static uint64_t at;
    uint64_t elapsed = (now - at) / sched.tsc_per_us * 1000, idle = 0;
    if (elapsed < IDLE_US * 1000)
        return false;
    uint32_t slots = slots_open(), to_work = (uint32_t)target();
    at = now;
    for (uint32_t i = 0; i < slots && i < LOOKS; i++)
        idle += idle_time(i, elapsed);
    uint64_t meant = slots > to_work ? slots - to_work : 0; /* idle on purpose */
    return elapsed < STILL_US * 1000 && !contended(now) && idle > elapsed * meant + elapsed * 3 / 4;
}

static void look_at(struct loop *l, uint64_t now, bool idle)
{
    uint64_t us = sched.tsc_per_us, bound = 2 * l->longest;
    int32_t missing = target() - working(l);
    if (bound < STILL_US * us)
        bound = STILL_US * us;
    if (bound > STILL_MAX_US * us)
        bound = STILL_MAX_US * us;
    if (now - l->looked > STILL_US * us) /* no thread was waiting */
        l->moved = l->roused = now;
    l->looked = now;
    if (l->chunks != l->chunks_now) {
        uint64_t gap = now - l->moved;
        if (l->roused <= l->moved) /* by itself, not because a waiter was released */
            l->longest = gap > l->longest ? gap : l->longest - l->longest / 16;
        l->chunks = l->chunks_now;
        l->moved = now;
    }
    uint64_t still = now - (l->roused > l->moved ? l->roused : l->moved);
    if (missing <= 0 && !idle && still < bound)
        return;
    l->roused = now;
    let_go(l, missing > 0 ? missing : 1);
}

bool loops_look(uint64_t now)
{
    if (shaken)
        shake();
    if (!__atomic_load_n(&waiting, __ATOMIC_SEQ_CST))
        return false;
    bool idle = cpu_idle(now);
    for (unsigned i = 0; i < LOOPS; i++)
        loops[i].chunks_now = 0;
    threads_each(add_chunks);
    for (unsigned i = 0; i < LOOPS; i++)
        if (waiters(&loops[i]))
            look_at(&loops[i], now, idle);
    return true;
}
