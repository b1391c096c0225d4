// join, detach, tryjoin, timedjoin and clockjoin; return values; joins from other threads; errors.
#include "pthread_test.h"
#include <semaphore.h>

static sem_t gate, done;
static pthread_t *targets;
static int threads;

static void *value(void *arg) { return arg; }
static void *exits(void *arg) { pthread_exit(arg); }
static void *after_gate(void *arg) {
    while (sem_wait(&gate)) EQ(errno, EINTR);
    return arg;
}
static void *detached(void *arg) {
    if (arg) OK(pthread_detach(pthread_self()));
    SYS(sem_post(&done));
    return NULL;
}
static void *join_other(void *arg) {
    long i = (long)(intptr_t)arg;
    EQ((long)t_join(targets[i]), i);
    return arg;
}
static void *join_self(void *arg) {
    EQ(pthread_join(pthread_self(), NULL), EDEADLK);
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    targets = calloc(1024, sizeof *targets);
    SYS(sem_init(&gate, 0, 0));
    SYS(sem_init(&done, 0, 0));
    PHASE("values");
    for (int i = 0; i < threads; i++)
        targets[i] = t_spawn(i & 1 ? value : exits, (void *)(intptr_t)(i + 1000));
    for (int i = threads - 1; i >= 0; i--) EQ((long)t_join(targets[i]), i + 1000);
    PHASE("joined by other threads");
    for (int i = 0; i < threads; i++) targets[i] = t_spawn(after_gate, (void *)(intptr_t)i);
    pthread_t *joiners = calloc(1024, sizeof *joiners);
    for (int i = 0; i < threads; i++) joiners[i] = t_spawn(join_other, (void *)(intptr_t)i);
    t_sleep_ms(2);
    for (int i = 0; i < threads; i++) SYS(sem_post(&gate));
    for (int i = 0; i < threads; i++) EQ((long)t_join(joiners[i]), i);
    t_run(1, join_self);
    PHASE("try and timed");
    pthread_t t = t_spawn(after_gate, (void *)5L);
    void *v = NULL;
    EQ(pthread_tryjoin_np(t, &v), EBUSY);
    for (int c = 0; c < 2; c++) {
        clockid_t clock = c ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec until = t_after_ms(clock, 15);
        EQ(pthread_clockjoin_np(t, &v, clock, &until), ETIMEDOUT);
        CHECK(t_now(clock) >= (int64_t)until.tv_sec * 1000000000 + until.tv_nsec, "early");
    }
    SYS(sem_post(&gate));
    struct timespec until = t_after_ms(CLOCK_REALTIME, 50000);
    OK(pthread_timedjoin_np(t, &v, &until));
    EQ((long)v, 5);
    t = t_spawn(value, (void *)6L);
    int r;
    while ((r = pthread_tryjoin_np(t, &v)) == EBUSY) t_sleep_us(100);
    OK(r);
    EQ((long)v, 6);
    PHASE("detached");
    pthread_attr_t a;
    OK(pthread_attr_init(&a));
    OK(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
    for (int i = 0; i < threads; i++) {
        if (i % 3 == 0)
            OK(pthread_create(&t, &a, detached, NULL));
        else
            t = t_spawn(detached, (void *)(intptr_t)(i % 3 == 1));
        if (i % 3 == 2) OK(pthread_detach(t));
    }
    for (int i = 0; i < threads; i++)
        while (sem_wait(&done)) EQ(errno, EINTR);
    t = t_spawn(after_gate, NULL);
    OK(pthread_detach(t));
    EQ(pthread_join(t, NULL), EINVAL);
    EQ(pthread_detach(t), EINVAL);
    SYS(sem_post(&gate));
    return t_ok("pthread_join");
}
