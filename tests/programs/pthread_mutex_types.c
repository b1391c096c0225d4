// Each mutex type keeps a counter exact among THREADS threads, and handles misuse as POSIX
// requires.
#include "pthread_test.h"

static pthread_mutex_t mutex;
static long counter;
static int rounds, type;

static void init(int kind) {
    pthread_mutexattr_t a;
    OK(pthread_mutexattr_init(&a));
    OK(pthread_mutexattr_settype(&a, kind));
    OK(pthread_mutex_init(&mutex, &a));
    OK(pthread_mutexattr_destroy(&a));
    type = kind;
    counter = 0;
}

static void *count(void *arg) {
    for (int i = 0; i < rounds; i++) {
        int depth = type == PTHREAD_MUTEX_RECURSIVE ? 3 : 1;
        for (int d = 0; d < depth; d++) OK(pthread_mutex_lock(&mutex));
        long seen = counter;
        // Yielding in the critical section makes an unprotected counter lose updates.
        if (i % 64 == 0) sched_yield();
        counter = seen + 1;
        for (int d = 0; d < depth; d++) OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void *count_try(void *arg) {
    for (int i = 0; i < rounds; i++) {
        int r;
        while ((r = pthread_mutex_trylock(&mutex)) == EBUSY) sched_yield();
        OK(r);
        counter++;
        OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void *other_try(void *arg) {
    EQ(pthread_mutex_trylock(&mutex), EBUSY);
    return arg;
}
static void *other_unlock(void *arg) {
    EQ(pthread_mutex_unlock(&mutex), EPERM);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(40000, threads);
    const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                         PTHREAD_MUTEX_ADAPTIVE_NP};
    for (int k = 0; k < 4; k++) {
        PHASE("counter");
        init(kinds[k]);
        t_run(threads, count);
        EQ(counter, (long)threads * rounds);
        PHASE("trylock counter");
        counter = 0;
        rounds = t_share(4000, threads);
        t_run(threads, count_try);
        EQ(counter, (long)threads * rounds);
        rounds = t_share(40000, threads);

        PHASE("misuse");
        OK(pthread_mutex_lock(&mutex));
        t_run(1, other_try);
        if (type == PTHREAD_MUTEX_ERRORCHECK) {
            EQ(pthread_mutex_lock(&mutex), EDEADLK);
            EQ(pthread_mutex_trylock(&mutex), EBUSY);
            t_run(1, other_unlock);
        }
        if (type == PTHREAD_MUTEX_RECURSIVE) {
            OK(pthread_mutex_trylock(&mutex));
            t_run(1, other_unlock);
            OK(pthread_mutex_unlock(&mutex));
            t_run(1, other_try); // still held once
        }
        OK(pthread_mutex_unlock(&mutex));
        if (type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE)
            EQ(pthread_mutex_unlock(&mutex), EPERM);
        OK(pthread_mutex_destroy(&mutex));
    }
    return t_ok("pthread_mutex_types");
}
