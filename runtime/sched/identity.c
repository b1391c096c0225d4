/* SPDX-License-Identifier: MIT */
#include "sched/identity.h"
#include "sched/hooks.h"
#include "sched/user.h"

#include <linux/keyctl.h>
#include <sys/prctl.h>

#define SYS_landlock_restrict_self_ 446
enum { IOPRIO_WHO_PROCESS = 1, ARCH_SET_FS = 0x1002, ARCH_SET_CPUID = 0x1012, GROUPS = 32 };

static struct lock lock;
static uint64_t of_process; /* the credentials of most threads */

/* Threads that were created and have not made a call yet, by thread pointer or, from
 * identity_expect, by thread ID. The latest replaces the oldest. Under lock. */
enum { EXPECTED = 64 };
static struct expected {
    uint64_t id, credentials;
    bool own_attributes;
} expected[EXPECTED];
static uint32_t expected_next, expected_count;

/* Pre: lock. */
static void expect(struct expected e)
{
    struct expected *at = &expected[expected_next++ % EXPECTED];
    expected_count += !at->id;
    *at = e;
}

/* --- credentials ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

static uint64_t mix_memory(uint64_t h, uintptr_t at, size_t bytes)
{
    uint32_t word;
    for (size_t i = 0; i < bytes; i += 4)
        if (user_copy(lissom_self, &word, (const void *)(at + i), sizeof word) == 0)
            h = mix(h, word);
    return h;
}

/* Hash the credentials after a call: threads that have made the same calls have the same ones. */
static uint64_t after(uint64_t credentials, const struct user_registers *r)
{
    uint64_t h = mix(credentials, (uint64_t)r->rax);
    if (r->rax == SYS_setgroups)
        return mix_memory(mix(h, (uint64_t)r->rdi), (uintptr_t)r->rsi,
                          (size_t)(r->rdi < GROUPS ? r->rdi : GROUPS) * 4);
    if (r->rax == SYS_capset)
        return mix_memory(mix_memory(h, (uintptr_t)r->rdi, 8), (uintptr_t)r->rsi, 24);
    return mix(mix(mix(h, (uint64_t)r->rdi), (uint64_t)r->rsi), (uint64_t)r->rdx);
}

static uint64_t compared;
static uint32_t different;

static void count_different(struct thread *t) { different += t->credentials != compared; }
static void is_like_process(struct thread *t) { t->own_credentials = false; }

/* Return whether all registered threads have the credentials of t. Pre: lock. */
static bool all_like(const struct thread *t)
{
    compared = t->credentials;
    different = 0;
    threads_each(count_different);
    return !different;
}

long identity_credentials(struct thread *t, struct user_registers *r)
{
    uint64_t then = after(t->credentials, r);
    long result = prim_syscall6(r->rax, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
    /* these return the previous ID */
    bool ids_of_calls = r->rax == SYS_setfsuid || r->rax == SYS_setfsgid;
    if (result == 0 || ids_of_calls) {
        lock_take(&lock);
        t->credentials = then;
        t->own_credentials = then != of_process;
        if (t->own_credentials && all_like(t)) {
            of_process = then;
            threads_each(is_like_process);
        }
        lock_drop(&lock);
    }
    r->rax = result;
    monitor_restart();
    return ACTION_RETURN;
}

/* --- other attributes ------------------------------------------------------------------------- */

static bool prctl_changes(long option)
{
    switch (option) {
    case PR_SET_SECUREBITS:
    case PR_SET_KEEPCAPS:
    case PR_CAPBSET_DROP:
    case PR_CAP_AMBIENT:
    case PR_SET_TSC:
    case PR_MCE_KILL:
    case PR_SET_IO_FLUSHER:
    case PR_SET_SPECULATION_CTRL:
    case PR_SCHED_CORE: return true;
    }
    return false;
}

/* Return whether the call gives the calling thread an attribute of its own that its children
 * inherit. */
static bool changes(const struct user_registers *r)
{
    switch (r->rax) {
    case SYS_set_mempolicy:
    case SYS_landlock_restrict_self_:
    case SYS_iopl:
    case SYS_ioperm: return true;
    case SYS_personality: return (uint32_t)r->rdi != 0xffffffff;
    case SYS_keyctl:
        return r->rdi == KEYCTL_JOIN_SESSION_KEYRING || r->rdi == KEYCTL_SET_REQKEY_KEYRING;
    case SYS_arch_prctl: return r->rdi == ARCH_SET_FS || r->rdi == ARCH_SET_CPUID;
    case SYS_prctl: return prctl_changes(r->rdi);
    }
    return false;
}

void identity_changes(struct thread *t, enum lissom_pin_reason reason)
{
    if (!sched.has_made_threads && __atomic_load_n(&sched.threads, __ATOMIC_SEQ_CST) <= 1)
        return; /* threads that it creates will be like it */
    t->own_attributes = true;
    thread_pin(t, reason);
}

long identity_call(struct thread *t, struct user_registers *r)
{
    if (changes(r))
        identity_changes(t, LISSOM_PIN_identity);
    thread_learn(t, true);
    carrier_migrate_home(t);
    return ACTION_DIRECT;
}

/* --- new threads ------------------------------------------------------------------------------ */

void identity_inherit(const struct thread *t, uint64_t tls)
{
    bool inherits = t->own_attributes || t->own_credentials;
    if (!inherits && !__atomic_load_n(&expected_count, __ATOMIC_RELAXED))
        return;
    lock_take(&lock);
    for (uint32_t i = 0; i < EXPECTED; i++)
        if (expected[i].id == tls) { /* of a thread that could not be created */
            expected[i].id = 0;
            expected_count--;
        }
    if (inherits)
        expect((struct expected){tls, t->credentials, t->own_attributes});
    lock_drop(&lock);
}

void identity_expect(int32_t tid)
{
    lock_take(&lock);
    expect((struct expected){.id = (uint64_t)tid, .own_attributes = true});
    lock_drop(&lock);
}

bool identity_begin(struct thread *t)
{
    t->credentials = of_process;
    if (!__atomic_load_n(&expected_count, __ATOMIC_RELAXED))
        return false;
    lock_take(&lock);
    for (uint32_t i = 0; i < EXPECTED; i++)
        if (expected[i].id == t->fsbase || expected[i].id == (uint64_t)t->tid) {
            if (expected[i].id == t->fsbase)
                t->credentials = expected[i].credentials;
            t->own_attributes |= expected[i].own_attributes;
            expected[i].id = 0;
            expected_count--;
        }
    t->own_credentials = t->credentials != of_process;
    lock_drop(&lock);
    return t->own_attributes;
}

void identity_after_fork(struct thread *t)
{
    lock.word = 0;
    __builtin_memset(expected, 0, sizeof expected);
    expected_count = 0;
    of_process = t->credentials;
    t->own_credentials = t->own_attributes = false;
}
