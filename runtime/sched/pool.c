/* SPDX-License-Identifier: MIT
 *
 * Threads begin and end by the thousand, and one that is preempted with a lock keeps all others
 * from beginning, while who makes them goes on (measured: 14,000 of them; test process_detached).
 * So there are several lists of those that have ended, of which each takes one that nobody else is
 * at, and no system call or page fault under their locks.
 */
#include "sched/pool.h"
#include "prim/vector.h"
#include "sched/frame.h"

#include <sys/mman.h>

/* What a thread needs beside its structures, in one piece of LAYOUT bytes, most of which is never
 * touched. No guard pages: two more mappings a thread would take a process of 10,000 threads over
 * vm.max_map_count; our own frames are small and known. */
enum {
    STRUCTURES = 4096,
    CARRIER_STACK = 8192,
    RUNTIME_STACK = 16384,
    LAYOUT = STRUCTURES + VECTOR_ROOM + SAVE_AREA + SIGNAL_STACK + CARRIER_STACK + RUNTIME_STACK,
    CHUNK = 32, /* threads allocated at a time */
    AWAY = 1 << 30,
};

struct layout {
    struct thread thread;
    struct carrier carrier;
};
_Static_assert(sizeof(struct layout) <= STRUCTURES, "STRUCTURES is too small");

enum { SHARDS = 16 };
static struct shard {
    struct lock lock;
    struct thread *ended_head, *ended_tail; /* oldest first */
    char *chunk;
    uint32_t chunk_left;
} __attribute__((aligned(64))) shards[SHARDS];

static struct thread *all_threads; /* never unlinked */

/* Post: its lock is held. The first one that is free: so there is one list while no two threads
 * come at a time. */
static struct shard *lock_any(void)
{
    for (int i = 0; i < SHARDS; i++)
        if (lock_try(&shards[i].lock))
            return &shards[i];
    lock_take(&shards[0].lock);
    return &shards[0];
}

void threads_on_slot(const struct slot *s, void (*f)(struct thread *))
{
    for (struct thread *t = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); t; t = t->all_next)
        if (t->has_slot && t->slot == s)
            f(t);
}

void threads_each(void (*f)(struct thread *))
{
    for (struct thread *t = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); t; t = t->all_next)
        if (t->tid && !t->ended)
            f(t);
}

void pool_put(struct thread *t)
{
    __atomic_store_n(&t->ended, true, __ATOMIC_RELAXED);
    t->ended_next = NULL;
    struct shard *s = lock_any();
    if (s->ended_tail)
        s->ended_tail->ended_next = t;
    else
        s->ended_head = t;
    s->ended_tail = t;
    lock_drop(&s->lock);
}

static struct thread *take_oldest(struct shard *s)
{
    if (!__atomic_load_n(&s->ended_head, __ATOMIC_RELAXED) || !lock_try(&s->lock))
        return NULL;
    struct thread *t = s->ended_head;
    if (t) {
        s->ended_head = t->ended_next;
        if (!s->ended_head)
            s->ended_tail = NULL;
    }
    lock_drop(&s->lock);
    return t;
}

static void put_back(struct thread *t)
{
    struct shard *s = lock_any();
    t->ended_next = s->ended_head;
    s->ended_head = t;
    if (!s->ended_tail)
        s->ended_tail = t;
    lock_drop(&s->lock);
}

/* One whose kernel thread has really gone, and with it the last use of its stack. Post: NULL: there
 * is none, or others are at their lists. */
static struct thread *take_ended(void)
{
    for (int i = 0; i < SHARDS; i++) {
        struct thread *t = take_oldest(&shards[i]);
        if (t && (t->tid == 0 || prim_syscall3(SYS_tgkill, sched.pid, t->tid, 0) < 0))
            return t;
        if (t)
            put_back(t);
    }
    return NULL;
}

static char *make_chunk(void)
{
    /* Away from where the program's own mappings go: one of them may want to grow down. */
    static uintptr_t hint; /* the next chunk's, but for AWAY; two may have the same */
    const size_t size = (size_t)CHUNK * LAYOUT;
    uintptr_t below = __atomic_add_fetch(&hint, size, __ATOMIC_RELAXED) + AWAY;
    char *p = prim_mmap((void *)(((uintptr_t)&sched & ~0xffffful) - below), size,
                        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return prim_is_error(p) ? NULL : p;
}

/* Post: NULL: no memory. */
static struct thread *make(void)
{
    struct shard *s = lock_any();
    if (!s->chunk_left) {
        lock_drop(&s->lock);
        char *p = make_chunk();
        if (!p)
            return NULL;
        s = lock_any();
        /* what it has left is lost, if another thread was quicker: memory that was never touched */
        s->chunk = p;
        s->chunk_left = CHUNK;
    }
    struct thread *t = &((struct layout *)s->chunk)->thread;
    s->chunk += LAYOUT;
    s->chunk_left--;
    lock_drop(&s->lock);
    t->all_next = __atomic_load_n(&all_threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&all_threads, &t->all_next, t, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
    return t;
}

#define CLEAR(p, from, to) \
    __builtin_memset((char *)(p) + offsetof(typeof(*(p)), from), 0, \
                     offsetof(typeof(*(p)), to) - offsetof(typeof(*(p)), from))

/* Others may be looking at a structure that is used again: at who ran on a slot last, or at all
 * threads. What they follow points to something all the time: so slot, carrier, home, all from
 * all_next on, and a carrier's home_thread are left as they are. */
static void set_up(struct thread *t)
{
    struct layout *l = (struct layout *)t;
    char *base = (char *)l;
    t->home = t->carrier = &l->carrier;
    l->carrier.home_thread = t;
    CLEAR(t, in_runtime, slot);
    CLEAR(t, has_slot, carrier);
    CLEAR(t, next, all_next);
    CLEAR(&l->carrier, current, inbox);
    t->xsave = base + STRUCTURES;
    t->save_area = base + STRUCTURES + VECTOR_ROOM;
    l->carrier.signal_stack = base + STRUCTURES + VECTOR_ROOM + SAVE_AREA;
    l->carrier.stack = base + LAYOUT - RUNTIME_STACK;
    t->runtime_stack = base + LAYOUT;
    l->carrier.current = t;
    __builtin_memset(t->xsave, 0, 576); /* XRSTOR wants a clean header */
}

struct thread *pool_take(void)
{
    struct thread *t = take_ended();
    if (!t)
        t = make();
    if (t) {
        __atomic_store_n(&t->ended, true, __ATOMIC_RELEASE);
        set_up(t);
    }
    return t;
}

void pool_after_fork(const struct thread *self)
{
    /* Another thread may have been in the middle of changing these, or of setting up. */
    __builtin_memset(shards, 0, sizeof shards);
    for (struct thread *t = all_threads; t; t = t->all_next) {
        if (t == self)
            continue;
        t->tid = ((struct layout *)t)->carrier.tid = 0; /* set_up may not have come to t->home */
        t->has_slot = false;
        pool_put(t);
    }
}
