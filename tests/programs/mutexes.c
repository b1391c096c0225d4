/* SPDX-License-Identifier: MIT */
// Mutexes and condition variables as programs use them, to test libraries that replace them:
// threads that hold several at once, trylock, locks and waits with timeouts, recursive mutexes,
// broadcasts, cancelled waits.
//
//     mutexes THREADS ROUNDS
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOCKS = 5 };
static pthread_mutex_t locks[LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                       PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                       PTHREAD_MUTEX_INITIALIZER};
static long counts[LOCKS];
static pthread_mutex_t recursive, gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static long threads, rounds, arrived, phase, tried, entered;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static struct timespec soon(long us) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += us * 1000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

// Wait at a barrier made of a condition variable.
static void meet(void) {
    pthread_mutex_lock(&gate_lock);
    long mine = phase;
    if (++arrived == threads) {
        arrived = 0;
        phase++;
        pthread_cond_broadcast(&gate_changed);
    }
    while (phase == mine) pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void *work(void *argument) {
    unsigned random = (unsigned)(size_t)argument * 7919 + 1;
    for (long i = 0; i < rounds; i++) {
        random = random * 1103515245 + 12345;
        int a = (int)(random >> 16) % LOCKS, b = (int)(random >> 20) % LOCKS;
        // Lock in order to avoid deadlock. Unlock in the same order as well as in reverse.
        int low = a < b ? a : b, high = a < b ? b : a;
        pthread_mutex_lock(&locks[low]);
        if (high != low) pthread_mutex_lock(&locks[high]);
        counts[low]++;
        if (high != low) {
            counts[high]++;
            pthread_mutex_unlock(&locks[random & 1 ? low : high]);
            pthread_mutex_unlock(&locks[random & 1 ? high : low]);
        } else {
            pthread_mutex_unlock(&locks[low]);
        }
        int error = pthread_mutex_trylock(&locks[a]);
        CHECK(error == 0 || error == EBUSY);
        if (error == 0) {
            counts[a]++;
            __atomic_fetch_add(&tried, 1, __ATOMIC_RELAXED);
            pthread_mutex_unlock(&locks[a]);
        }
        __atomic_fetch_add(&entered, high != low ? 2 : 1, __ATOMIC_RELAXED);
        if (i % 16 == 0) {
            pthread_mutex_lock(&recursive);
            pthread_mutex_lock(&recursive);
            pthread_mutex_unlock(&recursive);
            pthread_mutex_unlock(&recursive);
        }
        if (i % 64 == 0) meet();
    }
    return NULL;
}

static void unlock(void *mutex) { pthread_mutex_unlock(mutex); }

// Wait for a signal that never comes, until cancelled.
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static void *wait_for_ever(void *argument) {
    (void)argument;
    pthread_mutex_lock(&locks[0]);
    pthread_cleanup_push(unlock, &locks[0]);
    __atomic_store_n(&arrived, 1, __ATOMIC_RELEASE);
    for (;;) pthread_cond_wait(&never, &locks[0]);
    pthread_cleanup_pop(1);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atol(argv[1]) : 8;
    rounds = argc > 2 ? atol(argv[2]) : 1000;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);

    pthread_t *list = calloc((size_t)threads, sizeof *list);
    for (long i = 0; i < threads; i++) CHECK(pthread_create(&list[i], NULL, work, (void *)i) == 0);
    for (long i = 0; i < threads; i++) pthread_join(list[i], NULL);
    long sum = 0;
    for (int i = 0; i < LOCKS; i++) sum += counts[i];
    CHECK(sum == entered + tried);

    // Timeouts.
    struct timespec until = soon(2000);
    pthread_mutex_lock(&locks[0]);
    CHECK(pthread_cond_timedwait(&never, &locks[0], &until) == ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&locks[0]) == EBUSY);
    pthread_t other;
    CHECK(pthread_mutex_unlock(&locks[0]) == 0);
    until = soon(2000);
    CHECK(pthread_mutex_timedlock(&locks[0], &until) == 0);
    pthread_mutex_unlock(&locks[0]);

    // A cancelled waiter holds the mutex when its handlers run.
    arrived = 0;
    CHECK(pthread_create(&other, NULL, wait_for_ever, NULL) == 0);
    while (!__atomic_load_n(&arrived, __ATOMIC_ACQUIRE));
    pthread_mutex_lock(&locks[0]); // the thread waits now
    pthread_cancel(other);
    pthread_mutex_unlock(&locks[0]);
    void *result;
    pthread_join(other, &result);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(pthread_mutex_trylock(&locks[0]) == 0);
    pthread_mutex_unlock(&locks[0]);
    CHECK(pthread_cond_destroy(&never) == 0 && pthread_mutex_destroy(&locks[0]) == 0);
    puts("ok");
    return 0;
}
