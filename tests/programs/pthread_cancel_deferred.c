// Deferred cancellation happens only at cancellation points, after cancellation was enabled.
// Handlers run last to first, then keys are destroyed. The value is PTHREAD_CANCELED.
#include "pthread_test.h"
#include <semaphore.h>

static char *order[1024];
static sem_t started;
static pthread_key_t key;
static int go;

static void note(void *arg) {
    char **mine = arg;
    strcat(*mine, "h");
}
static void note2(void *arg) {
    char **mine = arg;
    strcat(*mine, "H");
}
static void key_gone(void *arg) { strcat((char *)arg, "k"); }

static void wait_go(void) {
    while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST)) {
        // sched_yield is no cancellation point
        sched_yield();
    }
}

static void *testcancel(void *arg) {
    char **mine = &order[(intptr_t)arg];
    OK(pthread_setspecific(key, *mine));
    pthread_cleanup_push(note, mine);
    pthread_cleanup_push(note2, mine);
    SYS(sem_post(&started));
    wait_go();
    strcat(*mine, "1"); // the pending request waits for the next cancellation point
    pthread_testcancel();
    strcat(*mine, "x");
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *sleeper(void *arg) {
    char **mine = &order[(intptr_t)arg];
    OK(pthread_setspecific(key, *mine));
    pthread_cleanup_push(note, mine);
    SYS(sem_post(&started));
    wait_go();
    strcat(*mine, "1");
    for (;;) t_sleep_ms(1000);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *disabled(void *arg) {
    char **mine = &order[(intptr_t)arg];
    int old;
    OK(pthread_setspecific(key, *mine));
    OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
    EQ(old, PTHREAD_CANCEL_ENABLE);
    pthread_cleanup_push(note, mine);
    SYS(sem_post(&started));
    wait_go();
    t_sleep_ms(1);
    pthread_testcancel();
    strcat(*mine, "1");
    OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old));
    EQ(old, PTHREAD_CANCEL_DISABLE);
    t_sleep_ms(1);
    strcat(*mine, "x");
    pthread_cleanup_pop(0);
    return NULL;
}
static void *disabled_to_the_end(void *arg) {
    char **mine = &order[(intptr_t)arg];
    OK(pthread_setspecific(key, *mine));
    OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    SYS(sem_post(&started));
    wait_go();
    t_sleep_ms(1);
    strcat(*mine, "1");
    return (void *)7L;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    if (threads > 64) threads = 64; // all of them spin with sched_yield until the start
    void *(*const kinds[])(void *) = {testcancel, sleeper, disabled, disabled_to_the_end};
    const char *want[] = {"1Hhk", "1hk", "1hk", "1k"};
    int n = threads < 4 ? 4 : threads;
    pthread_t *t = calloc((size_t)n, sizeof *t);
    SYS(sem_init(&started, 0, 0));
    OK(pthread_key_create(&key, key_gone));
    for (int i = 0; i < n; i++) {
        order[i] = calloc(1, 32);
        t[i] = t_spawn(kinds[i % 4], (void *)(intptr_t)i);
    }
    PHASE("starting");
    for (int i = 0; i < n; i++)
        while (sem_wait(&started)) EQ(errno, EINTR);
    for (int i = 0; i < n; i++) OK(pthread_cancel(t[i]));
    __atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
    PHASE("joining");
    for (int i = 0; i < n; i++) {
        void *v = t_join(t[i]);
        if (i % 4 == 3)
            EQ((long)v, 7);
        else
            CHECK(v == PTHREAD_CANCELED, "thread %d returned %p", i, v);
        CHECK(!strcmp(order[i], want[i % 4]), "thread %d of kind %d: '%s', expected '%s'", i, i % 4,
              order[i], want[i % 4]);
    }
    return t_ok("pthread_cancel_deferred");
}
