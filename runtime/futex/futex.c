/* SPDX-License-Identifier: MIT */
#include "futex/futex.h"
#include "futex/chains.h"
#include "sched/contention.h"
#include "sched/profile.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "sched/slices.h"
#include "sched/timers.h"
#include "sched/user.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>

struct bucket futex_buckets[BUCKETS] __attribute__((aligned(4096)));
_Static_assert(sizeof futex_buckets % 4096 == 0, "futex_init wipes whole pages");
static bool wiped; /* the kernel zeroes them in a fork's child */
uint32_t futex_foreign_waiters;
/* The program has requeued, as no modern library does. From then on its threads wait in the
 * buckets' queues, where requeue finds them: neither in chains nor in the kernel by choice. */
static bool requeues;
/* Number of requeues that moved threads in the kernel, without the knowledge of their buckets. */
static uint32_t requeued_in_kernel;

#define ADDRESSES_END 0x7ffffffff000ul

void futex_init(void)
{
    wiped = prim_wipe_on_fork(futex_buckets, sizeof futex_buckets);
    chains_init();
}

void futex_after_fork(void)
{
    for (int i = 0; !wiped && i < BUCKETS; i++)
        futex_buckets[i] = (struct bucket){0};
    chains_after_fork();
    futex_foreign_waiters = giving_up();
    requeued_in_kernel = 0;
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Move up to n threads that wait on `address` from b to the list that ends at *tail. Returns their
 * number. Pre: b->lock. */
static int take_waiters(struct bucket *b, uintptr_t address, int n, uint32_t bitset,
                        struct thread ***tail)
{
    int taken = 0;
    for (struct thread *w = b->head, *next; w && taken < n; w = next) {
        next = w->wait_next;
        if (w->wait_address != address || !(w->wait_bitset & bitset))
            continue;
        queue_remove(b, w);
        w->next = NULL;
        **tail = w;
        *tail = &w->next;
        taken++;
    }
    return taken;
}

static long kernel_wake(uintptr_t address, int n, uint32_t bitset)
{
    count(wakes_kernel);
    return prim_syscall6(SYS_futex, (long)address, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, n, 0, 0,
                         bitset);
}

static bool kernel_has_waiters(const struct bucket *b)
{
    return __atomic_load_n(&b->kernel_waiters, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&requeued_in_kernel, __ATOMIC_SEQ_CST);
}

static bool foreign_waiters(void)
{
    return __atomic_load_n(&futex_foreign_waiters, __ATOMIC_SEQ_CST);
}

/* Wake up to n threads of b, or all. Updates b->bulk, which says whether later waiters join chains.
 * Returns the number woken. */
static int wake_waiters(struct thread *t, struct bucket *b, uintptr_t address, int n, bool all,
                        uint32_t bitset)
{
    struct thread *list = NULL, **tail = &list;
    int woken = all ? (int)chains_wake(t->slot, b, address) : 0;
    if (all && queue_list_is_empty(b))
        return woken;
    lock_take(&b->lock);
    if (!all)
        chains_fold(b);
    int taken = take_waiters(b, address, n - woken, bitset, &tail);
    if (!all && taken)
        b->bulk = 0;
    else if (taken > 1 && b->bulk < BULK)
        b->bulk++;
    lock_drop(&b->lock);
    slots_make_ready(list);
    return woken + taken;
}

/* Wake up to n threads. Returns the number woken, or a negated errno. Wakes kernel waiters first:
 * they queued before those in the bucket's queue (in_kernel_by_choice). */
static long wake(struct thread *t, uintptr_t address, int n, uint32_t bitset)
{
    struct bucket *b = bucket_of(address);
    /* The kernel wakes at least one, too. */
    if (n < 1)
        n = 1;
    bool all = n == INT_MAX && bitset == FUTEX_BITSET_MATCH_ANY;
    /* Order the program's store to the word before the reads of the bucket. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    int woken = 0;
    long r = 0;
    bool by_kernel = kernel_has_waiters(b);
    if (by_kernel && (r = kernel_wake(address, n, bitset)) > 0)
        woken = (int)r;
    if (woken < n && !queue_is_empty(b)) {
        bool timed = threshold_samples(t->slot);
        uint64_t begun = timed ? tsc() : 0;
        slices_begin_anew(t, t->slot);
        int taken = wake_waiters(t, b, address, n - woken, all, bitset);
        if (taken && timed)
            threshold_lost(t->slot, tsc() - begun, THRESHOLD_SAMPLE);
        count_on(t->slot, wakes, (uint64_t)taken);
        woken += taken;
    }
    if (woken < n && !by_kernel && foreign_waiters()) {
        by_kernel = true;
        if ((r = kernel_wake(address, n - woken, bitset)) > 0)
            woken += (int)r;
    }
    if (!by_kernel)
        count_on(t->slot, wakes_avoided, 1);
    return r < 0 && !woken ? r : woken;
}

/* Requeue the threads that wait in the kernel. Returns as futex(2). */
static long requeue_in_kernel(const struct user_registers *r, bool compare)
{
    long op = (compare ? FUTEX_CMP_REQUEUE : FUTEX_REQUEUE) | FUTEX_PRIVATE_FLAG;
    __atomic_fetch_add(&requeued_in_kernel, 1, __ATOMIC_SEQ_CST);
    long n = prim_syscall6(SYS_futex, r->rdi, op, r->rdx, r->r10, r->r8, r->r9);
    if (n <= (int)r->rdx) /* none was moved */
        __atomic_fetch_sub(&requeued_in_kernel, 1, __ATOMIC_SEQ_CST);
    return n;
}

/* Perform FUTEX_REQUEUE or FUTEX_CMP_REQUEUE. Keeps the buckets locked, and the woken threads
 * asleep, until the kernel has done its part. Otherwise one of them could wait again, at another
 * value than the compared one, and be moved. */
static long requeue(struct user_registers *r, bool compare)
{
    uintptr_t from = (uintptr_t)r->rdi, to = (uintptr_t)r->r8;
    int wake_n = (int)r->rdx, move_n = (int)r->r10;
    if (wake_n < 0 || move_n < 0 || (to & 3))
        return -EINVAL;
    struct bucket *a = bucket_of(from), *b = bucket_of(to);
    struct thread *list = NULL, **tail = &list;
    uint32_t value;
    /* fault before taking the locks: user.h */
    if (compare && lissom_guarded_load((const uint32_t *)from, &value))
        return -EFAULT;
    __atomic_store_n(&requeues, true, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    lock_two(a, b);
    chains_fold(a);
    chains_fold(b);
    long refused = 0, in_kernel = 0;
    if (compare && lissom_guarded_load((const uint32_t *)from, &value))
        refused = -EFAULT;
    else if (compare && value != (uint32_t)r->r9)
        refused = -EAGAIN;
    else if (kernel_has_waiters(a) || foreign_waiters())
        refused = in_kernel = requeue_in_kernel(r, compare);
    if (refused < 0) {
        unlock_two(a, b);
        return refused;
    }
    int woken = in_kernel < wake_n ? (int)in_kernel : wake_n, moved = (int)in_kernel - woken;
    woken += take_waiters(a, from, wake_n - woken, FUTEX_BITSET_MATCH_ANY, &tail);
    for (struct thread *w = a->head, *next; w && moved < move_n; w = next) {
        next = w->wait_next;
        if (w->wait_address != from)
            continue;
        w->wait_address = to;
        moved++;
        if (a == b)
            continue;
        queue_remove(a, w);
        queue_push(b, w);
    }
    unlock_two(a, b);
    slots_make_ready(list);
    return woken + moved;
}

/* Perform FUTEX_WAKE_OP. The operation on *second is atomic with respect to all that the program
 * does. */
static long wake_op(struct thread *t, struct user_registers *r)
{
    uintptr_t first = (uintptr_t)r->rdi, second = (uintptr_t)r->r8;
    uint32_t code = (uint32_t)r->r9;
    int op = (code >> 28) & 7, cmp = (code >> 24) & 15;
    int oparg = (int)(code << 8) >> 20, cmparg = (int)(code << 20) >> 20;
    if ((code >> 28) & 8)
        oparg = (int)(1u << (oparg & 31));
    if (op > FUTEX_OP_XOR || cmp > FUTEX_OP_CMP_GE)
        return -ENOSYS;
    uint32_t *word = (uint32_t *)second, old, new;
    if ((second & 3))
        return -EINVAL;
    if (lissom_guarded_load(word, &old))
        return -EFAULT;
    for (long differs = 1; differs;) {
        switch (op) {
        case FUTEX_OP_SET: new = (uint32_t)oparg; break;
        case FUTEX_OP_ADD: new = old + (uint32_t)oparg; break;
        case FUTEX_OP_OR: new = old | (uint32_t)oparg; break;
        case FUTEX_OP_ANDN: new = old & ~(uint32_t)oparg; break;
        default: new = old ^ (uint32_t)oparg; break;
        }
        differs = lissom_guarded_exchange(word, &old, new);
        if (differs < 0)
            return differs;
    }
    int o = (int)old;
    bool hit = cmp == FUTEX_OP_CMP_EQ   ? o == cmparg
               : cmp == FUTEX_OP_CMP_NE ? o != cmparg
               : cmp == FUTEX_OP_CMP_LT ? o < cmparg
               : cmp == FUTEX_OP_CMP_LE ? o <= cmparg
               : cmp == FUTEX_OP_CMP_GT ? o > cmparg
                                        : o >= cmparg;
    long n = wake(t, first, (int)r->rdx, FUTEX_BITSET_MATCH_ANY);
    if (hit) {
        long m = wake(t, second, (int)r->r10, FUTEX_BITSET_MATCH_ANY);
        n += m > 0 ? m : 0;
    }
    return n;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Remove t from its queue. Returns false if a waker has removed it. Requeue may move t to another
 * bucket meanwhile. */
static bool dequeue(struct thread *t)
{
    for (;;) {
        struct chain *c = __atomic_load_n(&t->chain, __ATOMIC_ACQUIRE);
        if (c) {
            if (chain_leave(c, t))
                return true;
            if (__atomic_load_n(&t->chain, __ATOMIC_ACQUIRE) == c)
                return false; /* a waker has taken its chain, and t has not run since */
            continue;         /* chains_fold has moved it */
        }
        struct bucket *b = __atomic_load_n(&t->bucket, __ATOMIC_ACQUIRE);
        if (!b)
            return false;
        lock_take(&b->lock);
        bool here = t->bucket == b;
        if (here)
            queue_remove(b, t);
        lock_drop(&b->lock);
        if (here)
            return true;
    }
}

bool futex_interrupt(struct thread *t)
{
    if (!dequeue(t))
        return false;
    t->interrupted = 1;
    slot_make_ready(t);
    return true;
}

/* Wait in the kernel, as natively. t is counted in its bucket, so that wakers go there. */
static long wait_in_kernel(struct thread *t, struct user_registers *r)
{
    count(blocks_kernel);
    __atomic_fetch_add(&bucket_of((uintptr_t)r->rdi)->kernel_waiters, 1, __ATOMIC_SEQ_CST);
    t->kernel_wait = (uintptr_t)r->rdi;
    slot_release(t);
    return ACTION_CALL;
}

void futex_call_done(struct thread *t, struct user_registers *r)
{
    (void)r;
    if (t->kernel_wait) {
        __atomic_fetch_sub(&bucket_of(t->kernel_wait)->kernel_waiters, 1, __ATOMIC_SEQ_CST);
        t->kernel_wait = 0;
    }
    if (t->foreign_wait) {
        __atomic_fetch_sub(&futex_foreign_waiters, 1, __ATOMIC_SEQ_CST);
        t->foreign_wait = false;
    }
}

enum { WAIT_ON = 1 };

/* Block t, which is in a queue, until it is woken. s: its slot before it joined. Returns as
 * wait_queued. */
static long block(struct thread *t, struct slot *s, const struct deadline *deadline)
{
    bool by_kernel = deadline && !deadline->by_monitor;
    t->interruptible = true;
    t->deadline = by_kernel;
    bool woken =
        slot_block(t, s, by_kernel ? &deadline->at : NULL, by_kernel && deadline->realtime);
    t->interruptible = false;
    t->deadline = false;
    if (!woken && dequeue(t)) {
        bool interrupted = t->pending_work;
        slot_acquire(t);
        return !interrupted ? -ETIMEDOUT : signals_notify_home(t) ? -EINTR : WAIT_ON;
    }
    if (!woken)
        slot_await(t);
    if (t->interrupted == TIMER_ENDED)
        return -ETIMEDOUT;
    if (woken && t->interrupted)
        return signals_notify_home(t) ? -EINTR : WAIT_ON;
    return 0;
}

long futex_compare(uintptr_t address, uint32_t value)
{
    uint32_t now;
    long fault = lissom_guarded_load((const uint32_t *)address, &now);
    if (fault)
        return fault;
    if (giving_up()) /* futex_end_all_waits has run, or waits for the lock */
        return 0;
    return now == value ? JOINED : -EAGAIN;
}

static long join_queue(struct thread *t, struct bucket *b, uintptr_t address, uint32_t value)
{
    t->wait_since = 0;
    lock_take(&b->lock); /* a full fence before the word is compared */
    long result = futex_compare(address, value);
    if (result == JOINED)
        queue_push(b, t);
    /* A full fence. A thread that notifies t of a signal sets pending_work, and then checks whether
     * t is in a queue (deferred_notify). */
    lock_drop(&b->lock);
    return result;
}

/* Wait in the queue of `address`. Returns 0 or an error of futex(2). -EINTR: a signal for t is
 * pending. WAIT_ON: the signal was for another thread. */
static long wait_queued(struct thread *t, uintptr_t address, uint32_t value, uint32_t bitset,
                        const struct deadline *deadline)
{
    struct bucket *b = bucket_of(address);
    /* read before t is in the queue: from then on a waker may change it */
    struct slot *s = t->slot;
    uint32_t now;
    t->wait_address = address;
    t->wait_bitset = bitset;
    t->interrupted = 0;
    /* fault before taking the lock: user.h */
    if (lissom_guarded_load((const uint32_t *)address, &now))
        return -EFAULT;
    if (now != value)
        return -EAGAIN;
    bool chains = __atomic_load_n(&b->bulk, __ATOMIC_RELAXED) == BULK &&
                  bitset == FUTEX_BITSET_MATCH_ANY && !__atomic_load_n(&requeues, __ATOMIC_RELAXED);
    long joined = chains ? chain_join(t, s, b, address, value) : USE_QUEUE;
    if (joined == USE_QUEUE)
        joined = join_queue(t, b, address, value);
    if (joined != JOINED)
        return joined;
    count_on(s, blocks, 1);
    bool timer = deadline && deadline->by_monitor;
    if (timer) {
        count(timed_waits);
        timer_arm(t, s->index, deadline_clock(deadline), deadline_ns(deadline));
    }
    bool signal = t->pending_work && signals_pending(t) && dequeue(t);
    long n = signal ? -EINTR : block(t, s, deadline);
    if (timer)
        timer_disarm(t);
    __atomic_store_n(&t->chain, NULL, __ATOMIC_RELEASE); /* a waker of a whole chain left it */
    return n;
}

bool timer_ends_wait(struct thread *t) { return dequeue(t); }

/* Wait for `deadline` at most. Returns an ACTION_*, or -1: wait again. */
static long wait_until(struct thread *t, struct user_registers *r, uint32_t bitset,
                       const struct deadline *deadline)
{
    uintptr_t address = (uintptr_t)r->rdi;
    uint32_t value = (uint32_t)r->rdx, now;
    struct slot *s = t->slot;
    if (futex_spin(t, bucket_of(address), (const uint32_t *)address, value)) {
        count_on(s, blocks_spun, 1);
        threshold_wait_ended(s);
        r->rax = lissom_guarded_load((const uint32_t *)address, &now) ? -EFAULT : -EAGAIN;
        return ACTION_RETURN;
    }
    profile_wait(s, address, r);
    r->rax = wait_queued(t, address, value, bitset, deadline);
    threshold_wait_ended(t->slot); /* if the word had changed */
    if (r->rax == WAIT_ON)
        return -1;
    return r->rax == -EINTR ? signals_end_wait(t, r, deadline != NULL) : ACTION_RETURN;
}

long futex_wait_inside(struct thread *t, const uint32_t *word, uint32_t value,
                       const struct deadline *deadline)
{
    long n;
    do
        n = wait_queued(t, (uintptr_t)word, value, FUTEX_BITSET_MATCH_ANY, deadline);
    while (n == WAIT_ON);
    return n;
}

bool futex_wake_inside(const uint32_t *word) { return futex_wake_some_inside(word, 1); }

bool futex_wake_some_inside(const uint32_t *word, int n)
{
    struct bucket *b = bucket_of((uintptr_t)word);
    struct thread *list = NULL, **tail = &list;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* as in wake */
    if (queue_is_empty(b))
        return false;
    lock_take(&b->lock);
    chains_fold(b);
    take_waiters(b, (uintptr_t)word, n, FUTEX_BITSET_MATCH_ANY, &tail);
    lock_drop(&b->lock);
    slots_make_ready(list);
    return list != NULL;
}

static long wait(struct thread *t, struct user_registers *r, int op, uint32_t bitset)
{
    struct deadline limit, *deadline = r->r10 ? &limit : NULL;
    if (deadline) {
        r->rax = deadline_read(r, op, deadline);
        if (r->rax)
            return ACTION_RETURN;
        deadline_settle(t, deadline);
    } else {
        thread_learn(t, false);
    }
    long action;
    do
        action = wait_until(t, r, bitset, deadline);
    while (action < 0);
    return action;
}

void futex_end_all_waits(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        struct bucket *b = &futex_buckets[i];
        struct thread *list = NULL, **tail = &list;
        lock_take(&b->lock);
        chains_fold(b);
        for (struct thread *w; (w = b->head) != NULL;) {
            queue_remove(b, w);
            w->next = NULL;
            *tail = w;
            tail = &w->next;
        }
        lock_drop(&b->lock);
        slots_make_ready(list);
    }
}

/* --- the call --------------------------------------------------------------------------------- */

static long finish(struct user_registers *r, long result)
{
    r->rax = result;
    return ACTION_RETURN;
}

/* Pass on to the kernel waits and wakes that only it can do: the other side may be another process,
 * or the kernel itself. Returns an ACTION_*. */
static long in_kernel(struct thread *t, int command)
{
    switch (command) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI:
        /* the kernel compares the word with the tid of its own thread */
        thread_pin(t, LISSOM_PIN_pi_futex);
        break;
    default: carrier_migrate_home(t);
    }
    switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
        count(blocks_kernel);
        slot_release(t);
        return ACTION_CALL;
    default: return ACTION_DIRECT;
    }
}

/* Return whether t is to wait in the kernel: after giving up, or where user space gains nothing.
 * Beside other programs the runtime does not know which of its threads has a CPU. Not while other
 * threads are in the queue, since wakers wake kernel waiters first. */
static bool in_kernel_by_choice(const struct thread *t, uintptr_t address)
{
    if (sched.native_waits || t->real_time)
        return true;
    return thread_stays(t) && kernel_decides(tsc()) &&
           !__atomic_load_n(&requeues, __ATOMIC_RELAXED) && queue_is_empty(bucket_of(address));
}

long futex_call(struct thread *t, struct user_registers *r)
{
    int op = (int)r->rsi, command = op & FUTEX_CMD_MASK;
    uintptr_t address = (uintptr_t)r->rdi;
    uint32_t bitset = FUTEX_BITSET_MATCH_ANY;
    if (!(op & FUTEX_PRIVATE_FLAG))
        return in_kernel(t, command);
    if (op & ~(FUTEX_CMD_MASK | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME))
        return in_kernel(t, -1);
    if ((op & FUTEX_CLOCK_REALTIME) && command != FUTEX_WAIT_BITSET && command != FUTEX_WAIT)
        return in_kernel(t, command);
    if (address & 3)
        return finish(r, -EINVAL);
    if (address >= ADDRESSES_END)
        return finish(r, -EFAULT);
    switch (command) {
    case FUTEX_WAIT_BITSET:
        bitset = (uint32_t)r->r9;
        if (!bitset)
            return finish(r, -EINVAL);
        /* fall through */
    case FUTEX_WAIT:
        if (command == FUTEX_WAIT && (op & FUTEX_CLOCK_REALTIME))
            return in_kernel(t, command);
        if (in_kernel_by_choice(t, address)) {
            carrier_migrate_home(t);
            return wait_in_kernel(t, r);
        }
        return wait(t, r, op, bitset);
    case FUTEX_WAKE_BITSET:
        bitset = (uint32_t)r->r9;
        if (!bitset)
            return finish(r, -EINVAL);
        /* fall through */
    case FUTEX_WAKE:
        finish(r, wake(t, address, (int)r->rdx, bitset));
        if (!r->rax)
            thread_learn(t, false);
        break;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        finish(r, requeue(r, command == FUTEX_CMP_REQUEUE));
        if (r->rax > 0)
            slices_begin_anew(t, t->slot);
        break;
    case FUTEX_WAKE_OP: finish(r, wake_op(t, r)); break;
    default: return in_kernel(t, command);
    }
    if (slot_over_slice(t))
        slot_yield(t);
    return ACTION_RETURN;
}
