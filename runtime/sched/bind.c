/* SPDX-License-Identifier: MIT
 *
 * A hand-off between kernel threads wakes the next thread and then sleeps. While both are runnable,
 * the kernel searches for a better CPU for the woken one. It lands behind another slot's thread,
 * and that CPU's own thread goes elsewhere. In a virtual machine each such move costs the wake-up
 * of an idle CPU. (Measured with 32 threads at a barrier on 2 CPUs: 257 us a round, 160 when bound;
 * a condition variable: 376 and 163.) No futex operation informs the kernel that the waker is about
 * to sleep. So a pinned thread is bound to the CPU of its slot before it is granted the slot.
 *
 * With fewer slots than CPUs, the process is confined to as many CPUs as it has slots. Then each
 * slot has a CPU, too. And no more threads run at a time, even if the monitor lends a slot to a
 * second thread: under a quota, extra running time is paid for with a stop of all threads.
 *
 * The invariant: a running thread is bound to the CPU of its slot or to none. How far a program can
 * see this:
 *
 * - sched_getaffinity is answered with the mask of the process (syscalls.c);
 * - children inherit a mask, so a thread is unbound before clone, fork, vfork and execve;
 * - a thread whose mask the program set to another than the process's is never bound or confined;
 * - /proc/PID/task/TID/status shows it, also to other processes.
 *
 * Threads are bound and confined only while there are more threads than slots, and no other
 * programs are seen on the CPUs. Threads that run without a scheduling point do not notice when
 * that ends, so the monitor unbinds them. The first thread that is bound wakes the monitor, which
 * unbinds all before it sleeps for long.
 */
#include "prim/prim.h"
#include "sched/bind.h"
#include "sched/contention.h"
#include "sched/hooks.h"
#include "sched/thread.h"

#include <string.h>

/* Value of t->bound: t has the mask of the process while others may be confined, until the
 * monitor's next check. */
enum { UNCONFINED = 0xffff };

static struct cpu_mask process_mask;
/* mask of threads that are not confined: as requested for the process, ignoring cpusets, or all
 * CPUs that could ever exist */
static struct cpu_mask full;
static struct cpu_mask wide; /* mask of unbound threads: full, or kept */
/* current and previous mask of confinement: threads may have inherited either */
static struct cpu_mask kept, kept_before;
static uint32_t confined_to; /* number of CPUs; 0: not confined */
static uint16_t cpu_of_slot[LISSOM_MAX_SLOTS];
static uint32_t slots_with_cpu; /* valid entries of cpu_of_slot */
static bool given_up;
static bool some_bound;     /* since the monitor last unbound all; under `setting` */
static struct lock setting; /* orders the program's settings and ours: the program's comes last */

static bool equal(const struct cpu_mask *a, const struct cpu_mask *b)
{
    return !memcmp(a->word, b->word, sizeof a->word);
}

void cpus_own_mask(struct cpu_mask *m) { cpus_mask_of(m, 0); }

void cpus_mask_now(struct cpu_mask *m) { cpus_mask_of(m, cpus_sentinel()); }

bool cpus_is_mask(const struct cpu_mask *m) { return equal(m, &process_mask); }

static void widen(struct thread *t)
{
    t->bound = 0;
    t->was_bound = true;
    prim_syscall3(SYS_sched_setaffinity, t->tid, wide.bytes, wide.word);
}

static void release(struct thread *t)
{
    if (t->was_bound && !t->own_affinity)
        widen(t);
}

static void release_bound(struct thread *t)
{
    if (t->bound && t->bound != UNCONFINED && !t->own_affinity)
        widen(t);
}

/* Pre: setting. */
static void release_all_bound(void)
{
    if (some_bound)
        threads_each(release_bound);
    some_bound = false;
}

static void confine(struct thread *t)
{
    if (!t->own_affinity && t->affinity_known && t->clone_state == CLONE_NONE)
        widen(t);
}

static void confine_unconfined(struct thread *t)
{
    if (t->bound == UNCONFINED)
        confine(t);
}

/* Pre: setting. */
static void set_free(void)
{
    slots_with_cpu = confined_to = 0;
    wide = full;
    threads_each(release);
}

static bool is_part(const struct cpu_mask *a, const struct cpu_mask *of)
{
    for (uint32_t i = 0; i < CPU_MASK_WORDS; i++)
        if (a->word[i] & ~of->word[i])
            return false;
    return true;
}

/* Give the calling thread the mask of unbound threads. While there is a sentinel, the monitor's own
 * mask means nothing. */
static void go_along(void) { prim_syscall3(SYS_sched_setaffinity, 0, wide.bytes, wide.word); }

void cpus_mask_is(const struct cpu_mask *m, bool is_all)
{
    lock_take(&setting);
    bool was_confined = confined_to;
    process_mask = full = *m;
    if (is_all)
        memset(full.word, 0xff, m->bytes);
    set_free();
    if (was_confined)
        go_along();
    lock_drop(&setting);
}

void cpus_confine(uint32_t n, const struct cpu_mask *among)
{
    lock_take(&setting);
    if (n == confined_to && is_part(&kept, among)) {
        threads_each(confine_unconfined);
    } else if (!given_up && cpus_sentinel_begins()) {
        kept_before = kept;
        memset(&kept, 0, sizeof kept);
        kept.bytes = process_mask.bytes;
        cpus_choose(among, n, cpu_of_slot);
        for (uint32_t i = 0; i < n; i++)
            kept.word[cpu_of_slot[i] / 64] |= 1ull << (cpu_of_slot[i] % 64);
        slots_with_cpu = confined_to = n;
        wide = kept;
        threads_each(confine);
        go_along();
    }
    lock_drop(&setting);
}

/* Pre: setting. */
static void leave(void)
{
    if (!confined_to)
        return;
    set_free();
    go_along();
}

void cpus_leave(void)
{
    lock_take(&setting);
    leave();
    release_all_bound();
    lock_drop(&setting);
}

void cpus_unbind_all(void)
{
    lock_take(&setting);
    release_all_bound();
    lock_drop(&setting);
}

void cpus_free(void)
{
    lock_take(&setting);
    leave();
    if (slots_with_cpu)
        set_free();
    lock_drop(&setting);
}

void cpus_each_slot_its_own(void)
{
    uint32_t n = 0;
    lock_take(&setting);
    leave();
    if (!slots_with_cpu && !given_up) {
        for (uint32_t i = 0; i < process_mask.bytes * 8; i++)
            if (process_mask.word[i / 64] >> (i % 64) & 1 && n < LISSOM_MAX_SLOTS)
                cpu_of_slot[n++] = (uint16_t)i;
        slots_with_cpu = n;
    }
    lock_drop(&setting);
}

void cpus_give_up(void)
{
    lock_take(&setting);
    given_up = true;
    set_free();
    lock_drop(&setting);
}

void cpus_unbind_self(void)
{
    lock_take(&setting);
    go_along();
    lock_drop(&setting);
}

/* Return the CPU of slot s; -1: none. */
static long cpu_of(const struct slot *s)
{
    return s->index < slots_with_cpu ? cpu_of_slot[s->index] : -1;
}

/* Threads to come whose mask is the program's, even if it equals ours, by tid or thread pointer.
 * The latest replaces the oldest. */
static uint64_t expected[64];
static uint32_t expected_next;

void cpu_will_be_own(uint64_t tid_or_tls)
{
    lock_take(&setting);
    expected[expected_next++ % 64] = tid_or_tls;
    lock_drop(&setting);
}

/* Pre: setting. */
static bool is_expected(uint64_t tid_or_tls)
{
    for (uint32_t i = 0; i < 64; i++)
        if (expected[i] == tid_or_tls) {
            expected[i] = 0;
            return true;
        }
    return false;
}

bool cpu_look_at_affinity(struct thread *t)
{
    struct cpu_mask m;
    /* Read the mask before taking the lock: a thread preempted in a system call under the lock
     * would block all new threads. Until affinity_known is set, only the program changes t's mask,
     * and then it sets own_affinity. */
    cpus_own_mask(&m);
    lock_take(&setting);
    bool is_ours = kept.bytes && (equal(&m, &kept) || equal(&m, &kept_before));
    bool is_programs = is_expected((uint64_t)t->tid) | is_expected(t->fsbase);
    /* The thread that created t may have found it already, and set its mask: cpu_set_by_program. */
    t->affinity_known = true;
    t->own_affinity |= !equal(&m, &process_mask) && (is_programs || !is_ours);
    if (!t->own_affinity && (is_ours || confined_to) && !given_up) {
        t->was_bound = true;
        if (!equal(&m, &wide))
            widen(t);
    }
    lock_drop(&setting);
    return t->own_affinity && is_programs;
}

bool cpu_bind(struct thread *t, const struct slot *s)
{
    long cpu = contended(tsc()) ? -1 : cpu_of(s);
    if (cpu < 0) {
        cpu_unbind(t);
        return false;
    }
    if (t->bound == cpu + 1)
        return true;
    if (t->own_affinity || !t->pinned || !threads_exceed_slots()) {
        cpu_unbind(t);
        return false;
    }
    uint64_t word[CPU_MASK_WORDS] = {0};
    word[cpu / 64] = 1ull << (cpu % 64);
    lock_take(&setting);
    bool done = !t->own_affinity &&
                prim_syscall3(SYS_sched_setaffinity, t->tid, (cpu / 64 + 1) * 8, word) == 0;
    bool first = done && !some_bound;
    if (done)
        t->bound = (uint16_t)(cpu + 1);
    some_bound |= done;
    t->was_bound = true;
    lock_drop(&setting);
    if (first)
        monitor_kick();
    return done;
}

bool cpu_is_bound_elsewhere(const struct thread *t, const struct slot *s)
{
    return t->bound && t->bound != cpu_of(s) + 1;
}

void cpu_unbind(struct thread *t)
{
    if (!t->bound)
        return;
    lock_take(&setting);
    if (t->own_affinity || (t->bound == UNCONFINED && !confined_to)) /* it has its mask */
        t->bound = 0;
    else
        widen(t);
    lock_drop(&setting);
}

void cpu_set_free(struct thread *t)
{
    if (!sched.has_made_threads || given_up)
        return;
    struct cpu_mask place;
    lock_take(&setting);
    if (!t->own_affinity && cpu_place(t, &place) &&
        prim_syscall3(SYS_sched_setaffinity, t->tid, place.bytes, place.word) >= 0) {
        t->own_affinity = true; /* until the monitor's next check */
        t->bound = 0;
    } else if (!t->own_affinity) {
        if ((t->bound && t->bound != UNCONFINED) || confined_to)
            prim_syscall3(SYS_sched_setaffinity, t->tid, full.bytes, full.word);
        t->bound = UNCONFINED;
        t->was_bound = true;
    }
    lock_drop(&setting);
}

long cpu_set_by_program(struct thread *t, uint64_t bytes, const void *mask)
{
    lock_take(&setting);
    long r = prim_syscall3(SYS_sched_setaffinity, t->tid, bytes, mask);
    if (r >= 0) {
        struct cpu_mask now;
        cpus_mask_of(&now, t->tid);
        /* A mask of all CPUs of the process, or more, is no choice: the process may have been given
         * fewer since the program read its mask. */
        t->own_affinity = !is_part(&process_mask, &now);
        t->affinity_known = true;
        t->place_bytes = 0;
        t->was_bound |= confined_to > 0;
        t->bound = !t->own_affinity && confined_to ? UNCONFINED : 0;
    }
    lock_drop(&setting);
    return r;
}

static bool places_in_force; /* or to be put in force by the monitor */

bool cpu_place(const struct thread *t, struct cpu_mask *m)
{
    memset(m, 0, sizeof *m);
    memcpy(m->word, t->place, sizeof t->place);
    m->bytes = t->place_bytes;
    return m->bytes;
}

/* Pre: setting. */
static void settle_place(struct thread *t)
{
    if (!t->place_bytes || places_in_force == t->own_affinity || t->clone_state != CLONE_NONE)
        return;
    struct cpu_mask m;
    t->own_affinity = places_in_force && cpu_place(t, &m) &&
                      prim_syscall3(SYS_sched_setaffinity, t->tid, m.bytes, m.word) >= 0;
    if (t->own_affinity)
        t->bound = 0;
    else if (!places_in_force)
        widen(t);
}

void cpus_team_places(bool in_force)
{
    if (!sched.openmp_binds || given_up)
        return;
    lock_take(&setting);
    places_in_force = in_force;
    threads_each(settle_place);
    lock_drop(&setting);
}

void cpu_is_of_team(struct thread *t)
{
    struct cpu_mask m;
    lock_take(&setting);
    cpus_mask_of(&m, t->tid);
    bool beyond = false;
    for (uint32_t i = PLACE_CPUS / 64; i < CPU_MASK_WORDS; i++)
        beyond |= m.word[i];
    if (t->own_affinity && m.bytes && !beyond) {
        memcpy(t->place, m.word, sizeof t->place);
        t->place_bytes = m.bytes;
        settle_place(t);
    }
    lock_drop(&setting);
}

/* The child's thread has the mask of the process (cpu_set_free). */
void cpus_after_fork(void)
{
    setting.word = 0;
    lissom_self->bound = 0;
    cpus_sentinel_after_fork();
    slots_with_cpu = confined_to = 0;
    some_bound = false;
    wide = full;
}

bool cpu_is_hidden(const struct thread *t) { return t->was_bound && !t->own_affinity; }

const struct cpu_mask *cpus_of_process(void) { return &process_mask; }
