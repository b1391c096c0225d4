/* SPDX-License-Identifier: MIT
 *
 * Registration of threads at their first intercepted system call, their exit, and fork.
 */
#include "prim/vector.h"
#include "sched/hooks.h"
#include "sched/actions.h"
#include "sched/altstack.h"
#include "sched/bind.h"
#include "sched/frame.h"
#include "sched/identity.h"
#include "sched/pool.h"
#include "sched/ready.h"
#include "sched/release.h"
#include "sched/mask.h"
#include "sched/signals.h"
#include "sched/thread.h"
#include "sched/tids.h"

#include <cpuid.h>

_Static_assert(offsetof(struct thread, in_runtime) == T_IN_RUNTIME, "offsets.h");
_Static_assert(offsetof(struct thread, pending_work) == T_PENDING_WORK, "offsets.h");
_Static_assert(offsetof(struct thread, runtime_stack) == T_RUNTIME_STACK, "offsets.h");
_Static_assert(offsetof(struct thread, user_rsp) == T_USER_RSP, "offsets.h");
_Static_assert(offsetof(struct thread, site) == T_SITE, "offsets.h");
_Static_assert(offsetof(struct thread, context_rsp) == T_CONTEXT_RSP, "offsets.h");
_Static_assert(offsetof(struct thread, fsbase) == T_FSBASE, "offsets.h");
_Static_assert(offsetof(struct thread, xsave) == T_XSAVE, "offsets.h");
_Static_assert(offsetof(struct thread, raise_mask) == T_RAISE_MASK, "offsets.h");
_Static_assert(offsetof(struct thread, loop) == T_LOOP, "offsets.h");
_Static_assert(offsetof(struct thread, chunks) == T_CHUNKS, "offsets.h");
_Static_assert(offsetof(struct thread, at_work) == T_AT_WORK, "offsets.h");
_Static_assert(offsetof(struct thread, gsbase) == T_GSBASE, "offsets.h");
_Static_assert(offsetof(struct thread, seldom_turns) == T_SELDOM_TURNS, "offsets.h");
_Static_assert(offsetof(struct patch_redirect, real) == REDIRECT_REAL, "offsets.h");
_Static_assert(offsetof(struct patch_redirect, what) == REDIRECT_WHAT, "offsets.h");
_Static_assert(sizeof(struct user_registers) == R_SIZE, "offsets.h");
_Static_assert(offsetof(struct user_registers, rip) == R_RIP, "offsets.h");
_Static_assert(offsetof(struct user_registers, flags) == R_FLAGS, "offsets.h");
_Static_assert(offsetof(struct user_registers, r12) == R_R12, "offsets.h");
_Static_assert(offsetof(struct patch_site, syscall) == SITE_SYSCALL, "offsets.h");
_Static_assert(offsetof(struct patch_site, direct) == SITE_DIRECT, "offsets.h");
_Static_assert(offsetof(struct patch_site, after) == SITE_AFTER, "offsets.h");
_Static_assert(sizeof(struct patch_site) == SITE_SIZE, "offsets.h");

__thread struct thread *lissom_self __attribute__((tls_model("initial-exec")));
/* Components that XSAVEC saves. For context.S, "Vector state". */
uint64_t lissom_xsave_mask;
/* Result of vector_slow: the components that only XSAVEC saves. */
uint32_t lissom_vector_slow = ~0u;
/* An XSAVE area with every component in its initial state. */
char lissom_vector_initial[576] __attribute__((aligned(64)));

static uintptr_t read_fsbase(void)
{
    uintptr_t base;
    prim_syscall3(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, &base, 0);
    return base;
}

static uint32_t registered;

static void count_thread(void)
{
    uint32_t alive = __atomic_add_fetch(&sched.threads, 1, __ATOMIC_SEQ_CST);
    count(threads);
    if (alive > 1)
        sched.has_made_threads = true;
    uint64_t peak = __atomic_load_n(&record->counter[LISSOM_C_threads_peak], __ATOMIC_RELAXED);
    while (alive > peak &&
           !__atomic_compare_exchange_n(&record->counter[LISSOM_C_threads_peak], &peak, alive,
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void thread_pin(struct thread *t, enum lissom_pin_reason reason)
{
    carrier_migrate_home(t);
    if (t->pinned && t->pin_reason != LISSOM_PIN_blocking && !t->pinned_by_mask)
        return;
    if (t->pinned) /* pinned for a while, until now */
        __atomic_fetch_sub(&record->pinned[t->pin_reason], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&record->pinned[reason], 1, __ATOMIC_RELAXED);
    t->pinned = true;
    t->pinned_by_mask = false;
    t->pin_reason = (uint8_t)reason;
}

void thread_unpin(struct thread *t)
{
    if (t->pinned)
        __atomic_fetch_sub(&record->pinned[t->pin_reason], 1, __ATOMIC_RELAXED);
    t->pinned = t->pinned_by_mask = false;
    cpu_unbind(t);
    t->away_calls = 0;
}

enum {
    /* migrations home with few plain waits in between, after which a thread is pinned */
    AWAY_LIMIT = 16,
    PLAIN_LIMIT = 128, /* plain futex waits without a migration, after which it is unpinned */
};

void thread_learn(struct thread *t, bool needs_home)
{
    if (sched.level == LEVEL_KERNEL || !sched.user_switch)
        return;
    if (!needs_home) {
        if (++t->plain_waits >= PLAIN_LIMIT) {
            t->plain_waits = 0;
            t->away_calls = 0;
            if (t->pinned && t->pin_reason == LISSOM_PIN_blocking)
                thread_unpin(t);
        }
        return;
    }
    t->plain_waits = 0;
    if (t->carrier != t->home && ++t->away_calls >= AWAY_LIMIT)
        thread_pin(t, LISSOM_PIN_blocking);
}

static long policy_at_start;

void thread_class_at_start(void) { policy_at_start = prim_policy(0); }

/* Return whether the calling kernel thread has SCHED_FIFO, SCHED_RR or SCHED_DEADLINE, and the
 * program was not started with that. */
static bool is_real_time_by_choice(void)
{
    enum { FIFO = 1, RR = 2, DEADLINE = 6 };
    long policy = prim_policy(0);
    return policy != policy_at_start && (policy == FIFO || policy == RR || policy == DEADLINE);
}

void thread_look_at_class(struct thread *t)
{
    t->real_time = is_real_time_by_choice();
    if (t->real_time)
        slot_release(t);
}

struct thread *thread_register(void)
{
    if (!sched.active || giving_up())
        return NULL;
    uint64_t mask = signals_block_all();
    struct thread *t = pool_take();
    if (t) {
        ready_slice_ended(t); /* or threads that come and go would run before those that stay */
        t->slot = &sched.slot[__atomic_fetch_add(&registered, 1, __ATOMIC_RELAXED) % sched.slots];
        t->tid = t->home->tid = (int32_t)prim_syscall3(SYS_gettid, 0, 0, 0);
        __atomic_store_n(&t->ended, false, __ATOMIC_RELEASE);
        tids_insert(t->home);
        altstack_begin(t, t->home);
        mask = mask_set(t, mask);
        count_thread();
        t->fsbase = read_fsbase();
        t->in_runtime = 1;
        if (sched.level == LEVEL_KERNEL)
            thread_pin(t, LISSOM_PIN_option);
        else if (!sched.user_switch)
            thread_pin(t, LISSOM_PIN_no_fsgsbase);
        bool has_mask = cpu_look_at_affinity(t);
        if (sched.openmp_binds && t->tid == sched.pid)
            cpu_is_of_team(t);
        /* it may have inherited a place that has come into force meanwhile */
        has_mask |= sched.openmp_binds && t->own_affinity && !t->place_bytes;
        bool has_attributes = identity_begin(t) || sched.first_is_tied;
        sched.first_is_tied = false;
        t->real_time = is_real_time_by_choice();
        if (has_mask || t->real_time)
            thread_pin(t, LISSOM_PIN_affinity);
        t->pinned_by_mask = has_mask && !t->real_time && t->pin_reason == LISSOM_PIN_affinity;
        if (has_attributes)
            thread_pin(t, LISSOM_PIN_identity);
        if (sched.uses_rseq)
            thread_pin(t, LISSOM_PIN_rseq);
        lissom_self = t;
    }
    if (!t) /* its wakes would miss the waiters in our queues */
        on_give_up("no memory for a thread");
    signals_set_mask(mask);
    if (t) {
        slot_acquire(t);
        t->in_runtime = 0;
    }
    return t;
}

/* A system call of a kernel thread that has no struct thread, as pushed by switch.S on the
 * program's stack. */
struct unknown_call {
    long rbp, r9, r8, r10, rdx, rsi, rdi, rax;
    const struct patch_site *site;
    long flags;
    char red_zone[128];
    char program[]; /* its stack pointer */
};
/* DIRECT: make the call natively. DONE: the call has been made, with this rax. */
enum unknown { UNKNOWN_DIRECT = 0, UNKNOWN_DONE = 1 };

/* Register the calling kernel thread at its first call. Returns its struct thread, or an enum
 * unknown. Called by switch.S. */
uintptr_t lissom_first_call(struct unknown_call *c);
uintptr_t lissom_first_call(struct unknown_call *c)
{
    struct thread *t = thread_register();
    if (t || !giving_up())
        return (uintptr_t)t;
    if (c->site == &lissom_return_site)
        signals_return_native((uintptr_t)c->program);
    /* While any thread is registered, the kernel's actions are ours. */
    struct user_registers r = {
        .rax = c->rax, .rdi = c->rdi, .rsi = c->rsi, .rdx = c->rdx, .r10 = c->r10};
    if (c->rax != SYS_rt_sigaction || actions_call(&r) == ACTION_DIRECT)
        return UNKNOWN_DIRECT;
    c->rax = r.rax;
    return UNKNOWN_DONE;
}

void thread_exit(struct thread *t)
{
    on_thread_end(t);
    carrier_migrate_home(t);
    if (t->has_slot)
        slot_release(t);
    if (__atomic_sub_fetch(&sched.threads, 1, __ATOMIC_SEQ_CST) == 1)
        monitor_one_is_left();
    mask_thread_ends(t, true);
    pool_put(t);
}

void thread_forget_others(struct thread *self)
{
    sched.pid = prim_pid();
    sched.free_lock.word = 0;
    sched.free_head = sched.reserved_head = NULL;
    tids_after_fork();
    pool_after_fork(self);
    self->tid = self->home->tid = (int32_t)prim_syscall3(SYS_gettid, 0, 0, 0);
    self->carrier = self->home;
    self->home->current = self;
    self->home->reserved = NULL;
    tids_insert(self->home);
    sched.threads = 1;
    sched.has_made_threads = false;
    slots_init(sched.slots);
    sched.idle_count--;
    sched.slot[0].state = SLOT_BUSY;
    self->slot = &sched.slot[0];
    self->has_slot = true;
    self->attach = ATTACHED;
}
