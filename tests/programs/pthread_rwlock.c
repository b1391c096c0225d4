// Read-write locks of each preference: writers exclude all others, readers see complete updates;
// try and timed forms. With writer preference, a waiting writer gets the lock although new readers
// keep coming.
#include "pthread_test.h"

static pthread_rwlock_t lock;
static long a, b;
static int rounds, readers_in, stop, writer_done;

static void init(int kind) {
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    OK(pthread_rwlockattr_setkind_np(&attr, kind));
    OK(pthread_rwlock_init(&lock, &attr));
    a = b = 0;
}

static void *mix(void *arg) {
    uint64_t seed = (uint64_t)(intptr_t)arg + 7;
    long writes = 0;
    for (int i = 0; i < rounds; i++) {
        if (t_rand(&seed) % 4 == 0) {
            OK(pthread_rwlock_wrlock(&lock));
            long seen = a;
            if (i % 16 == 0) sched_yield();
            a = seen + 1;
            b = seen + 1;
            writes++;
        } else {
            OK(pthread_rwlock_rdlock(&lock));
            long seen = a;
            if (i % 16 == 0) sched_yield();
            EQ(b, seen);
        }
        OK(pthread_rwlock_unlock(&lock));
    }
    return (void *)writes;
}

static void *blocked(void *arg) { // main holds the write lock
    EQ(pthread_rwlock_tryrdlock(&lock), EBUSY);
    EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
    for (int c = 0; c < 2; c++) {
        clockid_t clock = c ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        for (int w = 0; w < 2; w++) {
            struct timespec t = t_after_ms(clock, 8);
            EQ(w ? pthread_rwlock_clockwrlock(&lock, clock, &t)
                 : pthread_rwlock_clockrdlock(&lock, clock, &t),
               ETIMEDOUT);
            CHECK(t_now(clock) >= (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, "early");
        }
    }
    struct timespec t = t_after_ms(CLOCK_REALTIME, 5);
    EQ(pthread_rwlock_timedwrlock(&lock, &t), ETIMEDOUT);
    EQ(pthread_rwlock_timedrdlock(&lock, &t), ETIMEDOUT);
    return arg;
}
static void *blocked_writer(void *arg) { // main holds a read lock
    OK(pthread_rwlock_tryrdlock(&lock));
    OK(pthread_rwlock_unlock(&lock));
    EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
    struct timespec t = t_after_ms(CLOCK_REALTIME, 5);
    EQ(pthread_rwlock_timedwrlock(&lock, &t), ETIMEDOUT);
    return arg;
}

// All readers must be inside before any leaves: readers share the lock.
static void *together(void *arg) {
    int all = (int)(intptr_t)arg;
    OK(pthread_rwlock_rdlock(&lock));
    __atomic_add_fetch(&readers_in, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&readers_in, __ATOMIC_SEQ_CST) < all) t_sleep_us(200);
    OK(pthread_rwlock_unlock(&lock));
    return NULL;
}

static void *stubborn_reader(void *arg) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        OK(pthread_rwlock_rdlock(&lock));
        t_sleep_us(300); // readers overlap, so that the lock is rarely free
        OK(pthread_rwlock_unlock(&lock));
    }
    return arg;
}
static void *writer(void *arg) {
    OK(pthread_rwlock_wrlock(&lock));
    writer_done = 1;
    OK(pthread_rwlock_unlock(&lock));
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                         PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    for (int k = 0; k < 3; k++) {
        init(kinds[k]);
        PHASE("mixed readers and writers");
        rounds = t_share(8000, threads);
        long writes = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(mix, (void *)(intptr_t)i);
        for (int i = 0; i < threads; i++) writes += (long)t_join(t[i]);
        EQ(a, writes);
        PHASE("blocked by a writer");
        OK(pthread_rwlock_wrlock(&lock));
        EQ(pthread_rwlock_wrlock(&lock), EDEADLK);
        EQ(pthread_rwlock_rdlock(&lock), EDEADLK);
        t_run(4, blocked);
        OK(pthread_rwlock_unlock(&lock));
        PHASE("blocked by a reader");
        OK(pthread_rwlock_rdlock(&lock));
        t_run(1, blocked_writer);
        OK(pthread_rwlock_unlock(&lock));
        PHASE("readers share");
        readers_in = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(together, (void *)(intptr_t)threads);
        for (int i = 0; i < threads; i++) t_join(t[i]);
        OK(pthread_rwlock_destroy(&lock));
    }
    PHASE("writer among stubborn readers");
    init(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(stubborn_reader, NULL);
    t_sleep_ms(3);
    t_run(1, writer);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    EQ(writer_done, 1);
    return t_ok("pthread_rwlock");
}
