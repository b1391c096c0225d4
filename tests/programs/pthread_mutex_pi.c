// Priority-inheritance mutexes: the futex word holds the owner's kernel tid. A thread that runs on
// another thread's carrier must not appear as a different owner.
#include "pthread_test.h"
#include <linux/futex.h>

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long counter;
static int rounds, threads, turn;

static void init(int type) {
    pthread_mutexattr_t a;
    OK(pthread_mutexattr_init(&a));
    OK(pthread_mutexattr_settype(&a, type));
    OK(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT));
    OK(pthread_mutex_init(&mutex, &a));
    counter = 0;
}

static void *count(void *arg) {
    pid_t me = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < rounds; i++) {
        OK(pthread_mutex_lock(&mutex));
        EQ(mutex.__data.__lock & FUTEX_TID_MASK, me);
        long seen = counter;
        if (i % 32 == 0) sched_yield();
        counter = seen + 1;
        OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void *times_out(void *arg) {
    for (int c = 0; c < 2; c++) {
        clockid_t clock = c ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec until = t_after_ms(clock, 15);
        int r = pthread_mutex_clocklock(&mutex, clock, &until);
        // Old kernels or libcs cannot wait for a PI mutex on CLOCK_MONOTONIC.
        if (c && r == EINVAL) continue;
        EQ(r, ETIMEDOUT);
        int64_t late = t_now(clock) - ((int64_t)until.tv_sec * 1000000000 + until.tv_nsec);
        CHECK(late >= 0, "returned %lld ns early", (long long)-late);
    }
    EQ(pthread_mutex_trylock(&mutex), EBUSY);
    return arg;
}

// A condition variable with a PI mutex: a ring of threads passes the turn.
static void *ring(void *arg) {
    int me = (int)(intptr_t)arg;
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < rounds; i++) {
        while (turn != me) OK(pthread_cond_wait(&cond, &mutex));
        EQ(mutex.__data.__lock & FUTEX_TID_MASK, syscall(SYS_gettid));
        turn = (turn + 1) % threads;
        counter++;
        OK(pthread_cond_broadcast(&cond));
    }
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    PHASE("counters");
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (int k = 0; k < 3; k++) {
        init(types[k]);
        rounds = t_share(8000, threads);
        t_run(threads, count);
        EQ(counter, (long)threads * rounds);
        OK(pthread_mutex_lock(&mutex));
        if (types[k] == PTHREAD_MUTEX_ERRORCHECK) EQ(pthread_mutex_lock(&mutex), EDEADLK);
        t_run(threads < 8 ? threads : 8, times_out);
        OK(pthread_mutex_unlock(&mutex));
    }
    PHASE("ring");
    init(PTHREAD_MUTEX_NORMAL);
    if (threads > 16) threads = 16; // each turn wakes all of them
    rounds = t_share(1000, threads);
    t_run(threads, ring);
    EQ(counter, (long)threads * rounds);
    return t_ok("pthread_mutex_pi");
}
