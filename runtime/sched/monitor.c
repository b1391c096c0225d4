/* SPDX-License-Identifier: MIT
 *
 * The monitor: one kernel thread of our own that sleeps while no thread is ready, and looks every slice while some
 * are: a slot that has not scheduled since the last look is run by a thread that computes, or that is blocked in the
 * kernel; the first of its ready list is then let run beside it (docs/slots.md, overcommit).
 *
 * It is made when threads first become ready behind others, so programs that are never oversubscribed have none.
 * It has no TLS, no handlers (all signals blocked, but the faults of guarded loads) and calls nothing of libc.
 */
#include "sched/thread.h"
#include "sched/signals.h"
#include "sched/waiting.h"
#include "spin/site.h"
#include "spin/spin.h"

#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

enum {
    TICK_US = 3000, /* a slice; shorter (spin_period_us) where threads are looked at for busy-waiting */
    QUIET_TICKS = 32, /* without a ready thread, before it sleeps */
    STACK = 16384,
};

static char stack[STACK] __attribute__((aligned(64)));
static uint32_t alive;   /* the kernel clears it and wakes its waiters when the monitor has gone */
static uint32_t leaving; /* the monitor is asked to go */

static void sample(struct slot *s)
{
    struct thread *t = __atomic_load_n(&s->runner, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&s->overcommit, __ATOMIC_RELAXED) && t && t->has_slot && t->slot == s)
        signals_sample(t);
    else /* several, or the last of several to come has left */
        threads_on_slot(s, signals_sample);
}

/* Every slot's thread at every tick, whatever is ready. Post: true. */
static bool observe(void)
{
    for (uint32_t i = 0; i < sched.slots; i++)
        if (__atomic_load_n(&sched.slot[i].state, __ATOMIC_RELAXED) != SLOT_IDLE)
            sample(&sched.slot[i]);
    return true;
}

static bool look(void)
{
    bool ready = sched.observe_spinning && observe();
    uint64_t now = tsc();
    for (uint32_t i = 0; i < sched.slots; i++) {
        struct slot *s = &sched.slot[i];
        bool parked = __atomic_load_n(&s->waiting_count, __ATOMIC_RELAXED);
        bool extra = sched.detect_spinning && __atomic_load_n(&s->overcommit, __ATOMIC_RELAXED);
        if (parked || extra)
            ready = true;
        if (__atomic_load_n(&s->ready_count, __ATOMIC_RELAXED) || extra || waiting_any_over(s, now, false)) {
            ready = true;
            bool stuck = s->monitor_seen == __atomic_load_n(&s->schedules, __ATOMIC_RELAXED);
            bool late = stuck && now - s->monitor_stuck >= TICK_US * sched.tsc_per_us;
            /* Asked once, a thread that goes on computes, or has the doorbell blocked. */
            bool unmoved = late && s->monitor_asked;
            s->monitor_asked = !unmoved && spin_may_sample(s, now);
            if (s->monitor_asked)
                sample(s);
            if (!stuck || (late && !s->monitor_asked))
                s->monitor_stuck = now;
            if (late && !s->monitor_asked)
                slot_overcommit(s);
        }
        s->monitor_seen = __atomic_load_n(&s->schedules, __ATOMIC_RELAXED);
    }
    if (carrier_preempt_reserved())
        ready = true;
    return ready;
}

static uint32_t tick_us(void)
{
    return sched.detect_spinning || sched.observe_spinning ? spin_period_us() : TICK_US;
}

static _Noreturn void monitor(void)
{
    uint32_t quiet = 0;
    /* Guarded loads of what parked threads wait for: the program may have taken the page away. */
    uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
    prim_syscall4(SYS_rt_sigprocmask, 1 /* SIG_UNBLOCK */, &faults, 0, 8);
    /* Its own table of descriptors, empty: what it opens takes no number of the program's, and it holds nothing open. Where
     * that is forbidden it goes without. */
    prim_syscall3(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
    for (;;) {
        if (__atomic_load_n(&leaving, __ATOMIC_ACQUIRE))
            prim_syscall3(SYS_exit, 0, 0, 0);
        spin_sites_serve();
        const struct timespec tick = {.tv_nsec = tick_us() * 1000};
        prim_syscall4(SYS_futex, &leaving, PRIM_FUTEX_WAIT_PRIVATE, 0, &tick);
        if (look()) {
            quiet = 0;
        } else if (++quiet >= QUIET_TICKS) {
            quiet = 0;
            spin_sites_off();
            __atomic_store_n(&sched.monitor_word, 0, __ATOMIC_SEQ_CST);
            if (look() || __atomic_load_n(&leaving, __ATOMIC_ACQUIRE)) {
                __atomic_store_n(&sched.monitor_word, 1, __ATOMIC_SEQ_CST);
                continue;
            }
            prim_futex_wait(&sched.monitor_word, 0);
        }
    }
}

static struct lock lifecycle; /* starting and ending: one stack, one monitor */

void monitor_after_fork(void)
{
    lifecycle.word = 0;
    sched.monitor_started = sched.monitor_word = alive = leaving = 0;
}

/* Pre: lifecycle. */
static void end(void)
{
    uint32_t there;
    if (sched.monitor_started) {
        __atomic_store_n(&leaving, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_word, 1, __ATOMIC_SEQ_CST);
        prim_futex_wake(&sched.monitor_word, 1);
        prim_futex_wake(&leaving, 1);
        while ((there = __atomic_load_n(&alive, __ATOMIC_SEQ_CST)) != 0)
            prim_syscall4(SYS_futex, &alive, 0 /* FUTEX_WAIT: the kernel's wake is a shared one */, there, 0);
        __atomic_store_n(&leaving, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_started, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&sched.monitor_word, 0, __ATOMIC_SEQ_CST);
    }
}

static void start(void)
{
    /* The child gets this stack and never returns; it has no TLS, and glibc does not know it. */
    alive = 1;
    uint64_t all = ~0ull, mask;
    prim_syscall4(SYS_rt_sigprocmask, 2, &all, &mask, 8);
    /* Right before the asm: a system call in between would use the same registers. */
    register long flags __asm__("rdi") =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    register void *top __asm__("rsi") = stack + STACK - 64;
    register uint32_t *clear __asm__("r10") = &alive;
    long ret;
    __asm__ volatile("xor %%edx, %%edx\n\txor %%r8d, %%r8d\n\tsyscall\n\t"
                     "test %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tcall *%[f]\n\tud2\n1:"
                     : "=a"(ret)
                     : "a"(SYS_clone), "r"(flags), "r"(top), "r"(clear), [f] "r"(&monitor)
                     : "rcx", "r11", "rdx", "r8", "memory");
    prim_syscall4(SYS_rt_sigprocmask, 2, &mask, 0, 8);
    if (ret < 0)
        alive = 0; /* no thread to be had now: tried again at the next poke */
    __atomic_store_n(&sched.monitor_started, ret > 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&sched.monitor_word, ret > 0, __ATOMIC_SEQ_CST);
}

void monitor_poke(void)
{
    if (__atomic_load_n(&sched.monitor_word, __ATOMIC_SEQ_CST))
        return;
    if (__atomic_load_n(&sched.monitor_started, __ATOMIC_SEQ_CST)) {
        if (!__atomic_exchange_n(&sched.monitor_word, 1, __ATOMIC_SEQ_CST))
            prim_futex_wake(&sched.monitor_word, 1);
        return;
    }
    lock_take(&lifecycle);
    if (!sched.monitor_started)
        start();
    lock_drop(&lifecycle);
}

void monitor_restart(void)
{
    lock_take(&lifecycle);
    end();
    lock_drop(&lifecycle);
    if (slots_anything_ready() || __atomic_load_n(&sched.reserved_head, __ATOMIC_RELAXED))
        monitor_poke();
}
