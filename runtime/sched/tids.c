/* SPDX-License-Identifier: MIT */
#include "sched/tids.h"

enum {
    TIDS = 1 << 17,
    /* each with its own lock: a preempted holder blocks few other threads */
    PARTS = 64,
    PART = TIDS / PARTS,
};
/* Open addressing within a part. Entries are overwritten, but never removed: a probe ends at
 * NULL. */
static struct carrier *by_tid[TIDS];
/* tid of the entry's carrier at insertion; under the part's lock */
static int32_t inserted_as[TIDS];
static struct lock part_lock[PARTS];

static uint32_t hash(int32_t tid) { return ((uint32_t)tid * 2654435761u) >> 15; }

static uint32_t after(uint32_t i) { return i / PART * PART + (i + 1) % PART; }

struct carrier *carrier_by_tid(int32_t tid)
{
    for (uint32_t i = hash(tid), n = 0; n < PART; i = after(i), n++) {
        struct carrier *k = __atomic_load_n(&by_tid[i], __ATOMIC_ACQUIRE);
        if (!k)
            return NULL;
        if (__atomic_load_n(&k->tid, __ATOMIC_RELAXED) == tid)
            return k;
    }
    return NULL;
}

/* Overwrite entries whose carrier was reused with another tid, and the entry of an exited thread
 * with the same tid: the kernel may have reused that. */
void tids_insert(struct carrier *k)
{
    uint32_t i = hash(k->tid);
    struct lock *l = &part_lock[i / PART];
    lock_take(l);
    for (uint32_t n = 0; n < PART; i = after(i), n++)
        if (!by_tid[i] || by_tid[i]->tid != inserted_as[i] || by_tid[i]->tid == k->tid) {
            inserted_as[i] = k->tid;
            __atomic_store_n(&by_tid[i], k, __ATOMIC_RELEASE);
            break;
        }
    lock_drop(l);
}

struct thread *thread_by_tid(int32_t tid)
{
    struct carrier *k = carrier_by_tid(tid);
    return k && !__atomic_load_n(&k->home_thread->ended, __ATOMIC_RELAXED) ? k->home_thread : NULL;
}

void tids_after_fork(void) { __builtin_memset(part_lock, 0, sizeof part_lock); }
