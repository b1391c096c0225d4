// timedlock and clocklock on both clocks do not time out early, and acquire the mutex when it
// becomes free. A counter stays exact while THREADS threads lock with random short timeouts.
#include "pthread_test.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter, taken;
static int rounds;

static int lock_until(clockid_t clock, const struct timespec *t, int plain) {
    return plain ? pthread_mutex_timedlock(&mutex, t) : pthread_mutex_clocklock(&mutex, clock, t);
}

static void *times_out(void *arg) {
    for (int plain = 0; plain < 2; plain++) {
        for (int c = 0; c < 2; c++) {
            clockid_t clock = c && !plain ? CLOCK_MONOTONIC : CLOCK_REALTIME;
            struct timespec until = t_after_ms(clock, 20);
            EQ(lock_until(clock, &until, plain), ETIMEDOUT);
            int64_t late = t_now(clock) - ((int64_t)until.tv_sec * 1000000000 + until.tv_nsec);
            CHECK(late >= 0, "returned %lld ns early (clock %d)", (long long)-late, (int)clock);
            struct timespec past = {1, 0}, wrong = {until.tv_sec, 1000000000};
            EQ(lock_until(clock, &past, plain), ETIMEDOUT);
            EQ(lock_until(clock, &wrong, plain), EINVAL);
        }
    }
    return arg;
}

static void *takes_it(void *arg) {
    clockid_t clock = arg ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    struct timespec until = t_after_ms(clock, 50000);
    OK(pthread_mutex_clocklock(&mutex, clock, &until));
    taken++;
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void *count(void *arg) {
    uint64_t seed = (uint64_t)(intptr_t)arg + 1;
    for (int i = 0; i < rounds; i++) {
        int r;
        do {
            struct timespec until = t_ts(t_now(CLOCK_MONOTONIC) + t_rand(&seed) % 2000000);
            r = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
        } while (r == ETIMEDOUT);
        OK(r);
        long seen = counter;
        if (t_rand(&seed) % 64 == 0) t_sleep_us(50);
        counter = seen + 1;
        OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    PHASE("times out");
    OK(pthread_mutex_lock(&mutex));
    t_run(threads, times_out);
    PHASE("takes it");
    pthread_t t[16];
    for (int i = 0; i < 16; i++) t[i] = t_spawn(takes_it, (void *)(intptr_t)(i & 1));
    t_sleep_ms(10);
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 16; i++) t_join(t[i]);
    EQ(taken, 16);
    PHASE("counter");
    rounds = t_share(6000, threads);
    t_run(threads, count);
    EQ(counter, (long)threads * rounds);
    return t_ok("pthread_mutex_timed");
}
