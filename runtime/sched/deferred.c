/* SPDX-License-Identifier: MIT */
#include "sched/deferred.h"
#include "sched/hooks.h"
#include "sched/frame.h"

#include <string.h>
#include <time.h>

/* Mark in si_errno, which no signal but seccomp's SIGSYS uses: deferred_send_again sent the
 * signal. */
enum { SENT_AGAIN = 0x6c737369 };

const char work_mark, scan_mark, slice_mark;

/* The kernel queues each of these signals with its siginfo, in order. Of any other, only one is
 * pending at a time. */
static bool is_counted(int sig) { return sig >= 32; }

siginfo_t kept_unpack(const struct kept *kept)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    memcpy(&info, kept, sizeof *kept);
    return info;
}

static void append(struct kept *list, uint32_t *count, const siginfo_t *info)
{
    memcpy(&list[*count], info, sizeof *list);
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

static uint32_t find(const struct kept *list, uint32_t count, int sig)
{
    uint32_t i = 0;
    while (i < count && list[i].signo != sig)
        i++;
    return i;
}

static void take_out(struct carrier *k, uint32_t at) /* of sent_again */
{
    k->sent_again_count--;
    memmove(&k->sent_again[at], &k->sent_again[at + 1],
            (k->sent_again_count - at) * sizeof *k->sent_again);
}

bool signal_to_self(int32_t tid, const siginfo_t *info)
{
    if (!prim_syscall4(SYS_rt_tgsigqueueinfo, sched.pid, tid, info->si_signo, info))
        return true;
    siginfo_t plain;
    memset(&plain, 0, sizeof plain);
    plain.si_signo = info->si_signo;
    plain.si_code = SI_USER;
    prim_syscall4(SYS_rt_tgsigqueueinfo, sched.pid, tid, info->si_signo, &plain);
    return false;
}

int deferred_first(const struct carrier *k) { return k->deferred[0].signo; }

static bool is_pending(int sig)
{
    uint64_t pending = 0;
    prim_syscall3(SYS_rt_sigpending, &pending, 8, 0);
    return pending & signal_bit(sig);
}

void deferred_in_turn(struct carrier *k, siginfo_t *info)
{
    int sig = info->si_signo;
    bool again = info->si_errno == SENT_AGAIN;
    if (again)
        info->si_errno = 0;
    uint32_t at = find(k->sent_again, k->sent_again_count, sig);
    if (at == k->sent_again_count)
        return;
    bool moves = !again && is_counted(sig);
    /* sigwait or the like has read the signals that were sent again */
    if (moves && !is_pending(sig)) {
        for (; at < k->sent_again_count; at = find(k->sent_again, k->sent_again_count, sig))
            take_out(k, at);
        return;
    }
    siginfo_t arrived = *info;
    *info = kept_unpack(&k->sent_again[at]);
    take_out(k, at);
    if (moves)
        append(k->sent_again, &k->sent_again_count, &arrived);
}

void deferred_keep(struct carrier *k, const siginfo_t *info, ucontext_t *uc)
{
    if (!is_counted(info->si_signo) &&
        find(k->deferred, k->deferred_count, info->si_signo) < k->deferred_count)
        return;
    if (k->deferred_count < DEFERRED_MAX)
        append(k->deferred, &k->deferred_count, info);
    else
        signal_to_self(k->tid, info);
    /* it has the preemption signal's number, and would come again at once */
    if (k->closed) {
        frame_set_mask(uc, frame_mask(uc) | signal_bit(info->si_signo));
    } else if (k->deferred_count == DEFERRED_MAX) {
        k->mask = frame_mask(uc);
        frame_set_mask(uc, deferred_closed_mask());
        k->closed = true;
    }
}

/* Signals that `mask` lets through arrive one after the other once it is in force: sent_again lists
 * those on their way. Signals sent now go before those still listed, which have not arrived
 * again. */
void deferred_send_again(struct carrier *k, uint64_t mask)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; i < k->deferred_count; i++) {
        siginfo_t info = kept_unpack(&k->deferred[i]), again = info;
        again.si_errno = SENT_AGAIN;
        if (!signal_to_self(k->tid, &again) || (mask & signal_bit(info.si_signo)))
            continue;
        if (k->sent_again_count < DEFERRED_MAX)
            k->sent_again_count++;
        memmove(&k->sent_again[listed + 1], &k->sent_again[listed],
                (k->sent_again_count - listed - 1) * sizeof *k->sent_again);
        memcpy(&k->sent_again[listed++], &info, sizeof *k->sent_again);
    }
    __atomic_store_n(&k->deferred_count, 0, __ATOMIC_RELAXED);
    k->closed = false;
    k->unnotified = false;
}

void deferred_notify(struct carrier *k)
{
    struct thread *h = k->home_thread;
    k->unnotified = false;
    __atomic_store_n(&h->pending_work, 1, __ATOMIC_SEQ_CST);
    if (!on_signal(h))
        preempt_thread(h, &work_mark);
}

void deferred_drop(struct carrier *k)
{
    k->deferred_count = k->sent_again_count = 0;
    k->closed = k->unnotified = k->preempt_sent = false;
}

void preempt_carrier(struct carrier *k, const char *mark)
{
    siginfo_t info;
    int sig = preempt_signal();
    /* Send only one at a time: a second pending preemption signal would add nothing. The kernel
     * ensures that only for uncounted signals. */
    if (sig == PREEMPT_COUNTED && __atomic_exchange_n(&k->preempt_sent, true, __ATOMIC_SEQ_CST))
        return;
    memset(&info, 0, sizeof info);
    info.si_signo = sig;
    info.si_code = SI_QUEUE;
    info.si_pid = sched.pid;
    info.si_value.sival_ptr = (void *)mark;
    if (prim_syscall4(SYS_rt_tgsigqueueinfo, sched.pid, k->tid, sig, &info))
        __atomic_store_n(&k->preempt_sent, false, __ATOMIC_SEQ_CST);
}

/* Hold the slot's lock, which t takes to leave the slot. Otherwise the signal could interrupt a
 * system call that t, or the next thread on its carrier, makes without a slot: it would end with
 * EINTR. If t gets another slot meanwhile, it checks pending_work on its way. */
void preempt_thread(struct thread *t, const char *mark)
{
    struct slot *s = t->slot;
    lock_take(&s->lock);
    struct carrier *k = __atomic_load_n(&t->carrier, __ATOMIC_RELAXED);
    if (t->has_slot && t->slot == s && k && __atomic_load_n(&k->current, __ATOMIC_RELAXED) == t)
        preempt_carrier(k, mark);
    lock_drop(&s->lock);
}

void preempt_discard_pending(struct carrier *k, int32_t tid)
{
    enum { PATIENCE = 1000, OTHERS = 8 };
    const uint64_t counted = signal_bit(PREEMPT_COUNTED);
    const struct timespec at_once = {0};
    siginfo_t info, other[OTHERS]; /* the program's */
    uint32_t others = 0;
    for (int i = 0;
         i < PATIENCE && others < OTHERS && __atomic_load_n(&k->preempt_sent, __ATOMIC_SEQ_CST);
         i++) {
        long sig = prim_syscall4(SYS_rt_sigtimedwait, &counted, &info, &at_once, 8);
        if (sig < 0) /* its sender has set k->preempt_sent, but not sent it yet */
            prim_syscall3(SYS_sched_yield, 0, 0, 0);
        else if (is_preempt_signal((int)sig, &info))
            __atomic_store_n(&k->preempt_sent, false, __ATOMIC_SEQ_CST);
        else
            other[others++] = info;
    }
    for (uint32_t i = 0; i < others; i++)
        signal_to_self(tid, &other[i]);
}

bool is_preempt_signal(int sig, const siginfo_t *info)
{
    const void *mark = info->si_value.sival_ptr;
    return (sig == PREEMPT_QUIET || sig == PREEMPT_COUNTED) && info->si_code == SI_QUEUE &&
           (mark == &work_mark || mark == &scan_mark || mark == &slice_mark);
}
