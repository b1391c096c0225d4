// Semaphores: unnamed and named, values, timed waits on both clocks, post before destroy,
// conservation of permits.
#include "pthread_test.h"
#include <fcntl.h>
#include <semaphore.h>

static sem_t sem, gate, *named, ping, pong;
static int rounds, inside, total;

static int wait_all(sem_t *s) {
    int r;
    while ((r = sem_wait(s)) == -1 && errno == EINTR) {}
    return r;
}

static void *limited(void *arg) {
    for (int i = 0; i < rounds; i++) {
        SYS(wait_all(&sem));
        int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        CHECK(now <= 3, "%d inside", now);
        if (i % 16 == 0) sched_yield();
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&total, 1, __ATOMIC_SEQ_CST);
        SYS(sem_post(&sem));
    }
    return arg;
}
static void *wait_gate(void *arg) {
    SYS(wait_all(&gate));
    __atomic_add_fetch(&total, 1, __ATOMIC_SEQ_CST);
    return arg;
}
static void *times_out(void *arg) {
    for (int c = 0; c < 2; c++) {
        clockid_t clock = c ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        struct timespec t = t_after_ms(clock, 15);
        ERR(sem_clockwait(&gate, clock, &t), ETIMEDOUT);
        CHECK(t_now(clock) >= (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, "early");
    }
    struct timespec t = t_after_ms(CLOCK_REALTIME, 5), wrong = {0, 1000000000};
    ERR(sem_timedwait(&gate, &t), ETIMEDOUT);
    ERR(sem_timedwait(&gate, &wrong), EINVAL);
    ERR(sem_trywait(&gate), EAGAIN);
    return arg;
}
static void *timed_taker(void *arg) {
    struct timespec t = t_after_ms(CLOCK_REALTIME, 50000);
    int r;
    while ((r = sem_timedwait(&gate, &t)) == -1 && errno == EINTR) {}
    SYS(r);
    __atomic_add_fetch(&total, 1, __ATOMIC_SEQ_CST);
    return arg;
}
static void *player(void *arg) {
    for (int i = 0; i < rounds; i++) {
        SYS(wait_all(&ping));
        SYS(sem_post(&pong));
    }
    return arg;
}
static void *named_user(void *arg) {
    for (int i = 0; i < rounds; i++) {
        SYS(wait_all(named));
        total++;
        SYS(sem_post(named));
    }
    return arg;
}
// The waiter destroys and overwrites the semaphore once it has acquired it; the poster must not
// access it afterwards.
static void *poster(void *arg) {
    SYS(sem_post((sem_t *)arg));
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads(), v;
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    PHASE("at most three inside");
    rounds = t_share(10000, threads);
    SYS(sem_init(&sem, 0, 3));
    t_run(threads, limited);
    EQ(total, threads * rounds);
    SYS(sem_getvalue(&sem, &v));
    EQ(v, 3);
    PHASE("posts one by one");
    SYS(sem_init(&gate, 0, 0));
    for (int timed = 0; timed < 2; timed++) {
        total = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(timed ? timed_taker : wait_gate, NULL);
        for (int i = 0; i < threads; i++) SYS(sem_post(&gate));
        for (int i = 0; i < threads; i++) t_join(t[i]);
        EQ(total, threads);
        SYS(sem_getvalue(&gate, &v));
        EQ(v, 0);
    }
    PHASE("times out");
    t_run(threads, times_out);
    PHASE("ping-pong");
    SYS(sem_init(&ping, 0, 0));
    SYS(sem_init(&pong, 0, 0));
    rounds = 5000;
    t[0] = t_spawn(player, NULL);
    for (int i = 0; i < rounds; i++) {
        SYS(sem_post(&ping));
        SYS(wait_all(&pong));
    }
    t_join(t[0]);
    PHASE("named");
    char name[64];
    snprintf(name, sizeof name, "/lissom-test-%d", (int)getpid());
    CHECK((named = sem_open(name, O_CREAT | O_EXCL, 0600, 1)) != SEM_FAILED, "sem_open: %s",
          strerror(errno));
    SYS(sem_unlink(name));
    total = 0;
    rounds = t_share(4000, threads);
    t_run(threads, named_user);
    EQ(total, threads * rounds);
    SYS(sem_close(named));
    PHASE("limits");
    SYS(sem_init(&sem, 0, SEM_VALUE_MAX));
    ERR(sem_post(&sem), EOVERFLOW);
    PHASE("destroy at once");
    for (int i = 0; i < 100; i++) {
        sem_t *s = malloc(sizeof *s);
        SYS(sem_init(s, 0, 0));
        t[0] = t_spawn(poster, s);
        SYS(wait_all(s));
        SYS(sem_destroy(s));
        memset(s, 0xff, sizeof *s);
        free(s);
        t_join(t[0]);
    }
    return t_ok("pthread_sem");
}
