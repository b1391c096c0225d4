/* SPDX-License-Identifier: MIT */
// spin-then-block: a ring with one token, whose stages spin for a while and then sleep.
#ifndef LISSOM_WORKLOADS_SPIN_BLOCK_H
#define LISSOM_WORKLOADS_SPIN_BLOCK_H

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spin.h"

static int block_cond;
static long spins = 1000;

static struct sleeper {
    alignas(LINE) _Atomic uint32_t arrived; // number of arrivals; wraps
    atomic_uint asleep;                     // for --block futex
    pthread_mutex_t lock;                   // for --block cond
    pthread_cond_t changed;
} *sleepers;

static void spin_then_block_prepare(void) {
    tokens_prepare();
    sleepers = memory(sizeof *sleepers * (size_t)options.threads);
    for (long i = 0; i < options.threads; i++) {
        pthread_mutex_init(&sleepers[i].lock, NULL);
        pthread_cond_init(&sleepers[i].changed, NULL);
    }
    atomic_init(&sleepers[0].arrived, 1);
}

static int has_arrived(struct sleeper *s, uint32_t before) {
    return atomic_load_explicit(&s->arrived, memory_order_acquire) != before;
}

static int spin_for(struct sleeper *s, uint32_t before) {
    if (pauses) {
        for (long n = spins; n > 0; n--) {
            if (has_arrived(s, before))
                return 1;
            CPU_PAUSE();
        }
    } else {
        for (long n = spins; n > 0; n--)
            if (has_arrived(s, before))
                return 1;
    }
    return has_arrived(s, before);
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void spin_then_block(struct worker *w, struct sleeper *s, uint32_t before) {
    if (spin_for(s, before))
        return;
    w->blocked++;
    if (block_cond) {
        pthread_mutex_lock(&s->lock);
        while (!has_arrived(s, before))
            pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    // Both sides store, then load the other's word, in one total order. So this side sees the
    // arrival, or the other one sees `asleep`.
    atomic_store(&s->asleep, 1);
    while (atomic_load(&s->arrived) == before)
        if (futex(&s->arrived, FUTEX_WAIT, before) != 0 && errno != EAGAIN && errno != EINTR)
            fail("futex: %s", strerror(errno));
    atomic_store_explicit(&s->asleep, 0, memory_order_relaxed);
}

static void arrive(struct sleeper *s) {
    if (block_cond) {
        pthread_mutex_lock(&s->lock);
        atomic_fetch_add_explicit(&s->arrived, 1, memory_order_release);
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    atomic_fetch_add(&s->arrived, 1);
    if (atomic_load(&s->asleep))
        futex(&s->arrived, FUTEX_WAKE, 1);
}

static void spin_then_block_work(struct worker *w) {
    struct sleeper *mine = &sleepers[w->index], *next = &sleepers[(w->index + 1) % options.threads];
    for (long pass = 0; pass < options.rounds; pass++) {
        spin_then_block(w, mine, (uint32_t)pass);
        take_step(w, pass);
        arrive(next);
    }
}

static void spin_then_block_describe(void) {
    long blocked = 0;
    for (long i = 0; i < options.threads; i++)
        blocked += workers[i].blocked;
    member("\"spins\": %ld, \"block\": \"%s\", \"blocked\": %ld, ", spins,
           block_cond ? "cond" : "futex", blocked);
}

#endif
