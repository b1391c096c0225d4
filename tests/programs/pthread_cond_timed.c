// timedwait and clockwait on both clocks: never early, EINVAL for an invalid time. The mutex is
// held afterwards, and a signal before the time is not reported as a timeout.
#include "pthread_test.h"

static int64_t ns(const struct timespec *t) { return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec; }

struct pair {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    clockid_t clock;
    int explicit_clock, ready;
};

static void init(struct pair *p, clockid_t clock, int explicit_clock) {
    pthread_condattr_t a;
    pthread_mutexattr_t m;
    OK(pthread_condattr_init(&a));
    // clockwait must ignore the attribute's clock: set the other one.
    OK(pthread_condattr_setclock(
        &a,
        explicit_clock ? (clock == CLOCK_MONOTONIC ? CLOCK_REALTIME : CLOCK_MONOTONIC) : clock));
    OK(pthread_cond_init(&p->cond, &a));
    OK(pthread_mutexattr_init(&m));
    OK(pthread_mutexattr_settype(&m, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutex_init(&p->mutex, &m));
    p->clock = clock;
    p->explicit_clock = explicit_clock;
    p->ready = 0;
}

static int wait_until(struct pair *p, const struct timespec *t) {
    return p->explicit_clock ? pthread_cond_clockwait(&p->cond, &p->mutex, p->clock, t)
                             : pthread_cond_timedwait(&p->cond, &p->mutex, t);
}

static void *waker(void *arg) {
    struct pair *p = arg;
    t_sleep_ms(5);
    OK(pthread_mutex_lock(&p->mutex));
    p->ready = 1;
    OK(pthread_cond_signal(&p->cond));
    OK(pthread_mutex_unlock(&p->mutex));
    return NULL;
}

static void *one(void *arg) {
    int i = (int)(intptr_t)arg;
    struct pair p;
    init(&p, i & 1 ? CLOCK_MONOTONIC : CLOCK_REALTIME, (i >> 1) & 1);
    OK(pthread_mutex_lock(&p.mutex));
    struct timespec until = t_after_ms(p.clock, 10 + i % 20);
    int r;
    while ((r = wait_until(&p, &until)) == 0) {} // spurious
    EQ(r, ETIMEDOUT);
    int64_t late = t_now(p.clock) - ns(&until);
    CHECK(late >= 0, "timed out %lld ns early on clock %d", (long long)-late, (int)p.clock);
    EQ(pthread_mutex_lock(&p.mutex), EDEADLK); // still held

    struct timespec past = {1, 0}, wrong = {until.tv_sec + 1000, -1};
    EQ(wait_until(&p, &past), ETIMEDOUT);
    EQ(wait_until(&p, &wrong), EINVAL);
    EQ(pthread_mutex_lock(&p.mutex), EDEADLK);

    pthread_t t = t_spawn(waker, &p);
    until = t_after_ms(p.clock, 100000);
    while (!p.ready) OK(wait_until(&p, &until));
    OK(pthread_mutex_unlock(&p.mutex));
    t_join(t);
    OK(pthread_cond_destroy(&p.cond));
    OK(pthread_mutex_destroy(&p.mutex));
    return NULL;
}

// Many timed waiters on one condition variable, some of which are signalled: no wake-up is lost and
// no thread waits forever.
static struct pair shared;
static int signalled, timed_out;
static void *herd(void *arg) {
    uint64_t seed = (uint64_t)(intptr_t)arg;
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(&shared.mutex));
        struct timespec until = t_ts(t_now(CLOCK_MONOTONIC) + t_rand(&seed) % 3000000);
        int r = wait_until(&shared, &until);
        if (r == ETIMEDOUT) {
            timed_out++;
            CHECK(t_now(CLOCK_MONOTONIC) >= ns(&until), "early");
        } else {
            OK(r);
            signalled++;
        }
        OK(pthread_mutex_unlock(&shared.mutex));
        OK(t_rand(&seed) % 4 ? pthread_cond_signal(&shared.cond)
                             : pthread_cond_broadcast(&shared.cond));
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    PHASE("one waiter each");
    t_run(threads < 4 ? 4 : threads, one);
    PHASE("herd");
    init(&shared, CLOCK_MONOTONIC, 0);
    t_run(threads, herd);
    EQ(signalled + timed_out, threads * 10);
    return t_ok("pthread_cond_timed");
}
