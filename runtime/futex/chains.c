/* SPDX-License-Identifier: MIT */
#include "futex/chains.h"
#include "futex/futex.h"
#include "futex/gather.h"

static struct chain chains[CHAIN_SLOTS][CHAINS] __attribute__((aligned(4096)));
_Static_assert(sizeof chains % 4096 == 0, "chains_init wipes whole pages");
static bool wiped; /* the kernel zeroes them in a fork's child */

void chains_init(void) { wiped = prim_wipe_on_fork(chains, sizeof chains); }

void chains_after_fork(void)
{
    gather_after_fork();
    if (!wiped)
        __builtin_memset(chains, 0, sizeof chains);
}

static struct chain *chain_of(const struct bucket *b, uint32_t slot)
{
    return &chains[slot][(size_t)(b - futex_buckets) % CHAINS];
}

static uint32_t slot_of(const struct chain *c) { return (uint32_t)((c - chains[0]) / CHAINS); }

static uint64_t bit(uint32_t slot) { return 1ull << slot; }

static void clear_bit(struct bucket *b, uint32_t slot)
{
    __atomic_fetch_and(&b->chains, ~bit(slot), __ATOMIC_SEQ_CST);
}

static void append(struct chain *c, struct thread *t)
{
    t->next = NULL;
    t->wait_prev = c->tail;
    if (c->tail)
        c->tail->next = t;
    else
        c->head = t;
    c->tail = t;
    c->count++;
    /* is_in, which may run under another chain's lock, relies on this order */
    __atomic_store_n(&t->wait_epoch, c->epoch, __ATOMIC_RELEASE);
    __atomic_store_n(&t->chain, c, __ATOMIC_RELEASE);
}

long chain_join(struct thread *t, const struct slot *s, struct bucket *b, uintptr_t address,
                uint32_t value)
{
    if (s->index >= CHAIN_SLOTS)
        return USE_QUEUE;
    struct chain *c = chain_of(b, s->index);
    lock_take(&c->lock);
    bool first = !c->count;
    if (!first && c->address != address) {
        lock_drop(&c->lock);
        return USE_QUEUE;
    }
    /* A full fence before the word is compared. If others are in the chain, the bit was set before
     * the lock was taken. */
    if (first)
        __atomic_fetch_or(&b->chains, bit(s->index), __ATOMIC_SEQ_CST);
    long result = futex_compare(address, value);
    if (result == JOINED) {
        c->address = address;
        t->wait_since = tsc();
        append(c, t);
    } else if (first) {
        clear_bit(b, s->index);
    }
    lock_drop(&c->lock);
    return result;
}

/* Return whether t is in c. A waker that removes all threads of c does not touch them, so t->chain
 * may be stale: the epoch then differs. t may also be joining another chain now. It writes
 * wait_epoch before chain, so the second read of chain shows that. Pre: c->lock. */
static bool is_in(const struct chain *c, const struct thread *t)
{
    return __atomic_load_n(&t->chain, __ATOMIC_ACQUIRE) == c &&
           __atomic_load_n(&t->wait_epoch, __ATOMIC_ACQUIRE) == c->epoch &&
           __atomic_load_n(&t->chain, __ATOMIC_ACQUIRE) == c;
}

bool chain_leave(struct chain *c, struct thread *t)
{
    lock_take(&c->lock);
    bool here = is_in(c, t);
    if (here) {
        if (t->wait_prev)
            t->wait_prev->next = t->next;
        else
            c->head = t->next;
        if (t->next)
            t->next->wait_prev = t->wait_prev;
        else
            c->tail = t->wait_prev;
        t->next = NULL;
        __atomic_store_n(&t->chain, NULL, __ATOMIC_RELEASE);
        if (--c->count == 0)
            clear_bit(bucket_of(c->address), slot_of(c));
    }
    lock_drop(&c->lock);
    return here;
}

/* Remove all threads from c, a chain of b. Pre: c->lock. */
static void empty(struct chain *c, struct bucket *b)
{
    c->head = c->tail = NULL;
    c->count = 0;
    c->epoch++;
    clear_bit(b, slot_of(c));
}

/* Woken threads, linked by next. */
struct list {
    struct thread *head, *tail;
    uint32_t count;
};

/* Remove all threads that wait at `address` from the slot's chain of b, and return them. */
static struct list take(struct bucket *b, uint32_t slot, uintptr_t address)
{
    struct chain *c = chain_of(b, slot);
    lock_take(&c->lock);
    struct list l = {c->head, c->tail, c->address == address ? c->count : 0};
    if (l.count)
        empty(c, b);
    lock_drop(&c->lock);
    return l;
}

/* Wake the threads of a chain on their slot. Returns the number woken. */
static uint32_t wake_there(struct bucket *b, uint32_t slot, uintptr_t address)
{
    struct list l = take(b, slot, address);
    if (l.count)
        slot_make_ready_list(&sched.slot[slot], l.head, l.tail, l.count, 0);
    return l.count;
}

/* Wake the threads of each chain on their slot, those of `own` last. Returns the number woken. */
static uint32_t wake_apart(const struct slot *own, struct bucket *b, uint64_t all,
                           uintptr_t address)
{
    uint32_t woken = 0;
    uint64_t last = own->index < CHAIN_SLOTS ? all & bit(own->index) : 0;
    for (uint64_t others = all & ~last; others; others &= others - 1)
        woken += wake_there(b, (uint32_t)__builtin_ctzll(others), address);
    if (last)
        woken += wake_there(b, own->index, address);
    return woken;
}

/* Wake the threads of all chains on `own`. Returns the number woken. */
static uint32_t wake_together(struct slot *own, struct bucket *b, uint64_t all, uintptr_t address,
                              uint64_t now)
{
    struct list sum = {0};
    for (; all; all &= all - 1) {
        struct list l = take(b, (uint32_t)__builtin_ctzll(all), address);
        if (!l.count)
            continue;
        if (sum.count)
            sum.tail->next = l.head;
        else
            sum.head = l.head;
        sum.tail = l.tail;
        sum.count += l.count;
    }
    if (sum.count)
        slot_make_ready_list(own, sum.head, sum.tail, sum.count, now + gather_kept_for(sum.count));
    return sum.count;
}

uint32_t chains_wake(struct slot *own, struct bucket *b, uintptr_t address)
{
    uint64_t all = __atomic_load_n(&b->chains, __ATOMIC_ACQUIRE), now = 0;
    if (!all)
        return 0;
    bool together = slots_open() > 1 && gather(now = tsc());
    uint32_t woken =
        together ? wake_together(own, b, all, address, now) : wake_apart(own, b, all, address);
    gather_woke(woken);
    return woken;
}

/* Move the threads of c to b's queue, in order of arrival. Pre: both locks. */
static void merge(struct bucket *b, const struct chain *c)
{
    struct thread *at = b->head;
    for (struct thread *w = c->head, *next; w; w = next) {
        next = w->next;
        while (at && at->wait_since <= w->wait_since)
            at = at->wait_next;
        queue_insert(b, w, at);
        w->next = NULL;
        __atomic_store_n(&w->chain, NULL, __ATOMIC_RELEASE); /* after w->bucket: see dequeue */
    }
}

void chains_fold(struct bucket *b)
{
    uint64_t bits = __atomic_load_n(&b->chains, __ATOMIC_SEQ_CST);
    for (; bits; bits &= bits - 1) {
        struct chain *c = chain_of(b, (uint32_t)__builtin_ctzll(bits));
        lock_take(&c->lock);
        if (c->count && bucket_of(c->address) == b) {
            merge(b, c);
            empty(c, b); /* clears the bit last: see queue_is_empty */
        }
        lock_drop(&c->lock);
    }
}
