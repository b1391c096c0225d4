/* SPDX-License-Identifier: MIT
 *
 * A sample: the monitor has found that a slot does not schedule while threads are ready (sched/monitor.c), and has sent its
 * thread a signal. Its registers are interpreted; a thread that waits gives way.
 */
#include "spin/spin.h"
#include "prim/lock.h"
#include "sched/thread.h"
#include "spin/interpret.h"

#include <errno.h>

enum { PERIOD_MIN_US = 100, PERIOD_MAX_US = 1000 };
static uint32_t period_us = PERIOD_MAX_US;

static struct lock looking;
static struct spin_scratch scratch; /* under looking */

uint32_t spin_period_us(void)
{
    uint32_t us = __atomic_load_n(&period_us, __ATOMIC_RELAXED);
    return us < PERIOD_MIN_US ? PERIOD_MIN_US : us > PERIOD_MAX_US ? PERIOD_MAX_US : us;
}

static long load(uintptr_t address, void *to, unsigned bytes)
{
    if (address >= 0x7ffffffff000ul - bytes)
        return -EFAULT;
    return lissom_guarded_copy(to, (const void *)address, bytes);
}

static uint64_t fs_base(void)
{
    uint64_t base = 0;
    if (sched.user_switch)
        __asm__ volatile("rdfsbase %0" : "=r"(base));
    else
        __asm__ volatile("mov %%fs:0, %0" : "=r"(base)); /* the thread's own address is its first word */
    return base;
}

/* The predicate, if it fits: aligned words of the kind that guarded loads read. */
static void remember(struct thread *t, const struct spin_result *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->loads; i++) {
        const struct spin_load *l = &r->load[i];
        if (l->stack)
            continue; /* nobody else's to change, as a rule */
        uint32_t shift = (uint32_t)(l->address & 3) * 8, bits = l->bytes * 8u;
        if (shift + bits > 32 && (shift || l->bytes != 8))
            return; /* across words */
        for (uint32_t half = 0; half < (l->bytes == 8 ? 2u : 1u); half++) {
            if (n == WAIT_WORDS)
                return;
            t->wait_word[n++] = (struct wait_word){
                .address = (l->address & ~3ul) + half * 4,
                .value = (uint32_t)(l->value >> (half * 32)) << shift,
                .mask = (bits >= 32 ? ~0u : (1u << bits) - 1) << shift,
            };
        }
    }
    t->wait_words = n;
}

bool spin_waits(struct thread *t, const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    const struct spin_config config = {.load = load};
    const struct spin_registers from = {
        .r = {(uint64_t)g[REG_RAX], (uint64_t)g[REG_RCX], (uint64_t)g[REG_RDX], (uint64_t)g[REG_RBX],
              (uint64_t)g[REG_RSP], (uint64_t)g[REG_RBP], (uint64_t)g[REG_RSI], (uint64_t)g[REG_RDI],
              (uint64_t)g[REG_R8], (uint64_t)g[REG_R9], (uint64_t)g[REG_R10], (uint64_t)g[REG_R11],
              (uint64_t)g[REG_R12], (uint64_t)g[REG_R13], (uint64_t)g[REG_R14], (uint64_t)g[REG_R15]},
        .rip = (uint64_t)g[REG_RIP],
        .flags = (uint64_t)g[REG_EFL],
        .fs_base = fs_base(),
        .xmm = uc->uc_mcontext.fpregs ? uc->uc_mcontext.fpregs->_xmm : NULL,
    };
    struct spin_result r;
    if (!lock_try(&looking))
        return false;
    enum spin_verdict verdict = spin_interpret(&config, &from, &scratch, &r);
    lock_drop(&looking);
    count(spin_samples);
    /* What counts without end may be the work itself. */
    bool waits = verdict == SPIN_ENDLESS || verdict == SPIN_PAUSE_ONLY ||
                 (verdict == SPIN_COUNTED && r.remaining != SPIN_TURNS_UNBOUNDED);
    if (waits)
        count(spin_waits);
    uint32_t us = spin_period_us();
    if (waits ? us > PERIOD_MIN_US : us < PERIOD_MAX_US)
        __atomic_store_n(&period_us, waits ? us / 2 : us * 2, __ATOMIC_RELAXED);
    if (verdict == SPIN_ENDLESS)
        remember(t, &r);
    return waits;
}
