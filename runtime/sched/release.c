/* SPDX-License-Identifier: MIT */
#include "sched/release.h"
#include "prim/task.h"
#include "sched/actions.h"
#include "sched/altstack.h"
#include "sched/frame.h"
#include "sched/deferred.h"
#include "sched/mask.h"
#include "sched/signals.h"
#include "sched/slots.h"
#include "sched/waiting.h"

#include <cpuid.h>
#include <time.h>

_Noreturn void lissom_resume(const ucontext_t *uc);

enum {
    HEADER = 64,         /* size of the XSAVE header */
    MAGIC2 = 0x46505845, /* follows an XSAVE area */
    UC_FLAGS = 7,        /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
};
#define CODE_AND_STACK_SEGMENT 0x002b000000000033ll

static uint64_t xgetbv(uint32_t which)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(which));
    return (uint64_t)hi << 32 | lo;
}

static uint32_t size_of(uint64_t features)
{
    uint32_t size = VECTOR_LEGACY + HEADER;
    for (unsigned i = 2; i < 63; i++) {
        unsigned bytes, offset, c, d;
        if (!(features & (1ull << i)))
            continue;
        __cpuid_count(0xd, i, bytes, offset, c, d);
        if (offset + bytes > size)
            size = offset + bytes;
    }
    return size;
}

/* Save the current vector registers as the kernel does in a frame. The runtime does not use them,
 * so they are the program's. */
static void save_vectors(char *area)
{
    unsigned a, b, c, d;
    __builtin_memset(area, 0, VECTOR_LEGACY + HEADER);
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) {
        __asm__ volatile("fxsave64 (%0)" : : "r"(area) : "memory");
        return;
    }
    /* Include tiles only if they are in use: the kernel accepts no frame larger than the thread has
     * had room for. */
    uint64_t features = xgetbv(0);
    if ((features & VECTOR_TILES) && !(xgetbv(1) & VECTOR_TILES))
        features &= ~VECTOR_TILES;
    struct vector_header h = {VECTOR_MAGIC, 0, features, size_of(features)};
    uint32_t magic2 = MAGIC2;
    h.bytes = h.size + (uint32_t)sizeof magic2;
    __asm__ volatile("xsave64 (%0)"
                     :
                     : "r"(area), "a"((uint32_t)features), "d"((uint32_t)(features >> 32))
                     : "memory");
    __builtin_memcpy(area + VECTOR_HEADER_AT, &h, sizeof h);
    __builtin_memcpy(area + h.size, &magic2, sizeof magic2);
}

static ucontext_t *context_of(struct thread *t, const struct user_registers *r, uintptr_t rip)
{
    struct signal_frame *f = (struct signal_frame *)((char *)t->save_area + 8); /* as frame_save */
    ucontext_t *uc = frame_context(f);
    greg_t *g = uc->uc_mcontext.gregs;
    __builtin_memset(f, 0, sizeof *f);
    g[REG_RAX] = r->rax, g[REG_RBX] = r->rbx, g[REG_RDX] = r->rdx, g[REG_RSI] = r->rsi,
    g[REG_RDI] = r->rdi;
    g[REG_RBP] = r->rbp, g[REG_RSP] = (greg_t)r->rsp, g[REG_R8] = r->r8, g[REG_R9] = r->r9,
    g[REG_R10] = r->r10;
    g[REG_R12] = r->r12, g[REG_R13] = r->r13, g[REG_R14] = r->r14, g[REG_R15] = r->r15;
    g[REG_EFL] = (greg_t)r->flags, g[REG_RIP] = (greg_t)rip, g[REG_CSGSFS] = CODE_AND_STACK_SEGMENT;
    uc->uc_flags = UC_FLAGS;
    save_vectors((char *)(f + 1));
    uc->uc_mcontext.fpregs = (void *)(f + 1);
    return uc;
}

static bool sandboxed;

/* Remove t from the runtime. It then only has to leave by rt_sigreturn(2) to `uc`, with the
 * program's mask. Pre: t is at home, without a slot, with all signals blocked. */
static void forget(struct thread *t, ucontext_t *uc)
{
    __atomic_store_n(&sandboxed, sandboxed || t->restricts, __ATOMIC_SEQ_CST);
    uc->uc_stack = t->altstack;
    frame_set_mask(uc, t->mask);
    mask_thread_ends(t, false);
    if (t->restricts)
        mask_stop();
    lissom_self = NULL;
    __atomic_store_n(&t->home->tid, 0, __ATOMIC_SEQ_CST);
    preempt_discard_pending(t->home, t->tid);
    __atomic_store_n(&t->ended, true, __ATOMIC_SEQ_CST);
    if (__atomic_sub_fetch(&sched.threads, 1, __ATOMIC_SEQ_CST) == 0) {
        actions_end();
        mask_all_left();
    }
}

void release_slot(struct thread *t)
{
    carrier_migrate_home(t);
    slot_release(t);
}

void release_by(struct thread *t, ucontext_t *uc)
{
    if (giving_up() && t->carrier == t->home && !t->has_slot && deferred_empty(t->home))
        forget(t, uc);
}

/* Handle a call of a thread that was in a system call when the process restricted itself. It stays
 * registered, but its calls are made natively. */
static long call_in_sandbox(struct thread *t, struct user_registers *r)
{
    switch (r->rax) {
    case SYS_rt_sigaction: return actions_call(r);
    case SYS_rt_sigprocmask: return signals_sigprocmask(t, r);
    case SYS_sigaltstack: return altstack_call(t, r);
    default: return ACTION_DIRECT;
    }
}

long release_call(struct thread *t, struct user_registers *r)
{
    if (__atomic_load_n(&sandboxed, __ATOMIC_RELAXED))
        return call_in_sandbox(t, r);
    release_slot(t);
    uint64_t mask = signals_block_all();
    if (!deferred_empty(t->home)) {
        signals_set_mask(mask);
        return signals_leave(t, r, ACTION_RESTART);
    }
    ucontext_t *uc = context_of(t, r, t->site->direct);
    forget(t, uc);
    t->in_runtime = 0;
    lissom_resume(uc);
}

/* Run all threads that wait for s, beside each other. */
static void drain(struct slot *s)
{
    for (;;) {
        lock_take(&s->lock);
        struct thread *t = slot_next(s);
        if (!t)
            t = waiting_take_any(s);
        if (t)
            s->overcommit++;
        lock_drop(&s->lock);
        if (!t)
            return;
        carrier_dispatch(t, s);
    }
}

static void preempt_to_leave(struct thread *t)
{
    if (t->has_slot)
        preempt_thread(t, &work_mark);
}

bool release_others(void)
{
    for (uint32_t i = 0; i < LISSOM_MAX_SLOTS && i < sched.slots_made; i++)
        drain(&sched.slot[i]);
    threads_each(preempt_to_leave);
    return !__atomic_load_n(&sched.threads, __ATOMIC_SEQ_CST);
}

static uint32_t in_the_way;
static bool is_late; /* time is up for threads that have had a CPU meanwhile */

/* Count t if it may still need the runtime. A thread without a slot that is not in the runtime is
 * in a system call of the program. */
static void count_in_the_way(struct thread *t)
{
    enum { ENOUGH_MS = 100 }; /* CPU time within which a thread should leave */
    uint64_t ran, delay;
    if (!t->has_slot && !__atomic_load_n(&t->in_runtime, __ATOMIC_SEQ_CST))
        return;
    in_the_way++;
    if (!is_late || !task_times(t->tid, &ran, &delay))
        return;
    if (!t->ran_at_release)
        t->ran_at_release = ran;
    else if (ran - t->ran_at_release > ENOUGH_MS * 1000000ull)
        in_the_way--; /* it computes, and blocks the preemption signal */
}

void release_wait(struct thread *t, uint32_t timeout_ms)
{
    enum { AT_MOST = 15 }; /* multiple of the timeout, if the machine is busy */
    const struct timespec pause = {.tv_nsec = 200000};
    uint64_t began = tsc(), time = timeout_ms * 1000 * sched.tsc_per_us;
    release_slot(t);
    is_late = false;
    do {
        release_others();
        in_the_way = 0;
        threads_each(count_in_the_way);
        if (in_the_way <= 1) /* t itself */
            break;
        prim_syscall3(SYS_nanosleep, &pause, 0, 0);
        is_late = tsc() - began > time;
    } while (tsc() - began < AT_MOST * time);
}
