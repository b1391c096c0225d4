/* SPDX-License-Identifier: MIT
 *
 * A program may create thousands of threads a second. If one of them is preempted while it holds a
 * lock, all new threads block on it, and their creator creates more (measured: 14,000; test
 * process_detached). So ended threads are kept in several shards, and a thread takes the first one
 * whose lock is free. No system call or page fault happens under these locks.
 */
#include "sched/pool.h"
#include "prim/vector.h"
#include "sched/frame.h"

#include <sys/mman.h>

/* The structures and stacks of a thread are one block of LAYOUT bytes; most of its pages are never
 * touched. There are no guard pages: with two more mappings for each thread, a process with 10,000
 * threads would exceed vm.max_map_count. The runtime's frames are small and of known size. */
enum {
    STRUCTURES = 4096,
    CARRIER_STACK = 8192,
    RUNTIME_STACK = 16384,
    LAYOUT = STRUCTURES + VECTOR_ROOM + SAVE_AREA + SIGNAL_STACK + CARRIER_STACK + RUNTIME_STACK,
    /* An odd number of cache lines between two blocks: what threads touch in a wait would otherwise
     * be in the same few sets of each cache. */
    SPACING = LAYOUT + 9 * 64,
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

/* Lock the first free shard and return it: without contention only shard 0 is used. */
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

struct thread *threads_find(bool (*is)(const struct thread *, int), int argument)
{
    struct thread *t = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE);
    while (t && !(t->tid && !t->ended && is(t, argument)))
        t = t->all_next;
    return t;
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

/* Take an ended thread whose kernel thread has exited, and so no longer uses its stack. Returns
 * NULL if there is none, or if the shards are locked. */
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
    /* Map far from the program's own mappings, because one of them may grow down. */
    static uintptr_t hint; /* total size of the chunks so far */
    const size_t size = ((size_t)CHUNK * SPACING + 4095) & ~(size_t)4095;
    uintptr_t below = __atomic_add_fetch(&hint, size, __ATOMIC_RELAXED) + AWAY;
    char *p = prim_mmap((void *)(((uintptr_t)&sched & ~0xffffful) - below), size,
                        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return prim_is_error(p) ? NULL : p;
}

/* Allocate a new thread. Returns NULL if out of memory. */
static struct thread *make(void)
{
    struct shard *s = lock_any();
    if (!s->chunk_left) {
        lock_drop(&s->lock);
        char *p = make_chunk();
        if (!p)
            return NULL;
        s = lock_any();
        /* If another thread has added a chunk meanwhile, the rest of that is lost. It is untouched
         * memory. */
        s->chunk = p;
        s->chunk_left = CHUNK;
    }
    struct thread *t = &((struct layout *)s->chunk)->thread;
    s->chunk += SPACING;
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

/* Other threads may still read a structure that is reused: they got it as the last runner of a
 * slot, or they walk the list of all threads. The pointers that they follow must be valid at all
 * times. So do not clear slot, carrier, home, the fields from all_next on, and the carrier's
 * home_thread. */
static void set_up(struct thread *t)
{
    struct layout *l = (struct layout *)t;
    char *base = (char *)l;
    t->home = t->carrier = &l->carrier;
    l->carrier.home_thread = t;
    CLEAR(t, in_runtime, slot);
    CLEAR(t, has_slot, carrier);
    CLEAR(t, next, all_next);
    CLEAR(&l->carrier, current, deferred);
    t->xsave = base + STRUCTURES;
    t->save_area = base + STRUCTURES + VECTOR_ROOM;
    l->carrier.signal_stack = base + STRUCTURES + VECTOR_ROOM + SAVE_AREA;
    l->carrier.stack = base + LAYOUT - RUNTIME_STACK;
    t->runtime_stack = base + LAYOUT;
    l->carrier.current = t;
    __builtin_memset(t->xsave, 0, 576); /* XRSTOR needs a clean header */
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
    /* Another thread may have been changing these, or setting up a structure, during the fork. */
    __builtin_memset(shards, 0, sizeof shards);
    for (struct thread *t = all_threads; t; t = t->all_next) {
        if (t == self)
            continue;
        t->tid = ((struct layout *)t)->carrier.tid = 0; /* t->home may not be set yet */
        t->has_slot = false;
        pool_put(t);
    }
}
