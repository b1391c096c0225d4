/* SPDX-License-Identifier: MIT */
// sensitivity: one thread holds a lock for long, and the others spin for it. The holder computes
// meanwhile, or sleeps, so that only waiters run. With two threads, under `lissom run --stats`, it
// also counts the waits in which the runtime detected the waiter, or the waiter yielded by itself.
#ifndef LISSOM_WORKLOADS_SPIN_SENSITIVITY_H
#define LISSOM_WORKLOADS_SPIN_SENSITIVITY_H

#include <semaphore.h>
#include <sys/mman.h>

#include "abi.h"
#include "spin.h"

static int hold_sleeping;
static sem_t held, asked, done, never; // semaphores, so that threads spin only for the lock
static double freed;                   // time of the unlock; protected by the lock
static struct {
    double hold, wait, wait_cpu, late; // sums, in seconds; protected by the lock
} times;

static struct lissom_record *record; // this process's; NULL: not counted
static long all_waits, waits_found;  // written by the waiter, of two threads

// Return this process's record in the statistics of `lissom run --stats`; NULL without them.
static struct lissom_record *own_record(void) {
    const char *fd = getenv(LISSOM_ENV_STATS_FD);
    struct lissom_region *region =
        fd ? mmap(NULL, LISSOM_REGION_BYTES, PROT_READ, MAP_SHARED, atoi(fd), 0) : MAP_FAILED;
    if (region == MAP_FAILED)
        return NULL;
    if (region->header.magic != LISSOM_ABI_MAGIC || region->header.version != LISSOM_ABI_VERSION)
        fail("sensitivity: the statistics are those of another version of lissom");
    struct lissom_record *found = NULL; // the last one: a process may have executed another program
    for (uint32_t i = 0; i < region->header.claimed && i < LISSOM_MAX_RECORDS; i++)
        if (region->record[i].pid == (uint32_t)getpid())
            found = &region->record[i];
    return found;
}

// Number of times that a thread was found waiting in a loop, or parked in one.
static uint64_t found(void) {
    uint64_t n = __atomic_load_n(&record->counter[LISSOM_C_spin_waits], __ATOMIC_RELAXED);
    for (int i = 0; i < LISSOM_STRIPES; i++)
        n += __atomic_load_n(&record->stripe[i][LISSOM_C_parks], __ATOMIC_RELAXED);
    return n;
}

static void sensitivity_prepare(void) {
    one_lock_prepare();
    record = options.threads == 2 ? own_record() : NULL;
    sem_init(&held, 0, 0);
    sem_init(&asked, 0, 0);
    sem_init(&done, 0, 0);
    sem_init(&never, 0, 0);
}

static void sem_take(sem_t *sem) {
    while (sem_wait(sem) != 0)
        if (errno != EINTR)
            fail("sem_wait: %s", strerror(errno));
}

// Sleep at a semaphore that is never posted, as a thread does that waits for another.
static void sleep_on_semaphore(double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double end = (double)t.tv_nsec * 1e-9 + seconds;
    t.tv_sec += (time_t)end;
    t.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    while (sem_clockwait(&never, CLOCK_MONOTONIC, &t) != 0 && errno == EINTR)
        ;
}

static double cpu_time(clockid_t of) {
    struct timespec t;
    clock_gettime(of, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void hold(struct worker *w) {
    long others = options.threads - 1;
    kind->lock(the_lock, &the_nodes[w->index]);
    for (long i = 0; i < others; i++)
        sem_post(&held);
    for (long i = 0; i < others; i++)
        sem_take(&asked); // the others are about to take the lock
    double begun = now(), cpu = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
    if (hold_sleeping)
        sleep_on_semaphore(options.seconds);
    else if (options.seconds > 0)
        while (now() - begun < options.seconds)
            w->sum = compute(w->sum, 1000);
    else
        w->sum = compute(w->sum, options.work);
    sections++;
    freed = now();
    times.hold += freed - begun;
    if (hold_sleeping)
        times.wait_cpu += cpu_time(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    kind->unlock(the_lock, &the_nodes[w->index]);
    for (long i = 0; i < others; i++)
        sem_take(&done);
}

static void wait_for_lock(struct worker *w) {
    sem_take(&held);
    double cpu = cpu_time(CLOCK_THREAD_CPUTIME_ID), begun = now();
    sem_post(&asked);
    uint64_t before = record ? found() : 0;
    kind->lock(the_lock, &the_nodes[w->index]);
    double got = now();
    if (record) {
        all_waits++;
        waits_found += found() != before;
    }
    times.wait += got - begun;
    if (!hold_sleeping)
        times.wait_cpu += cpu_time(CLOCK_THREAD_CPUTIME_ID) - cpu;
    times.late += got - freed;
    if (got < freed)
        fail("sensitivity: the lock %s was taken %.3f us before it was free", kind->name,
             (freed - got) * 1e6);
    sections++;
    kind->unlock(the_lock, &the_nodes[w->index]);
    sem_post(&done);
}

static void sensitivity_work(struct worker *w) {
    for (long i = 1; i <= options.rounds; i++) {
        if (w->index == 0)
            hold(w);
        else
            wait_for_lock(w);
        w->count++;
    }
}

static void sensitivity_check(void) {
    expect("the counter under the lock", sections, options.threads * options.rounds);
}

// Add the means to the line of JSON. wait_cpu_us: CPU time of a wait of wait_us; late_us: from
// unlock to lock. While the holder sleeps, the process's CPU time is that of the waiters. While it
// computes, the waiter's CPU time is that of its kernel thread, and means nothing if another one
// carries the waiter on.
static void sensitivity_describe(void) {
    double each = 1e6 / (double)options.rounds, waits = each / (double)(options.threads - 1);
    lock_describe();
    if (record)
        member("\"waits\": %ld, \"waits_found\": %ld, ", all_waits, waits_found);
    member("\"hold_us\": %.1f, \"wait_us\": %.1f, \"wait_cpu_us\": %.1f, \"late_us\": %.1f, ",
           times.hold * each, times.wait * waits, times.wait_cpu * waits, times.late * waits);
}

#endif
