// Asynchronous cancellation stops threads that compute and never call a function, at any point.
#include "pthread_test.h"
#include <semaphore.h>

static sem_t started;
static int handled;
static volatile unsigned long sink;

static void handler(void *arg) { __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST); }
static void *compute(void *arg) {
    int old;
    pthread_cleanup_push(handler, &handled);
    SYS(sem_post(&started));
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
    EQ(old, PTHREAD_CANCEL_DEFERRED);
    unsigned long x = (unsigned long)(intptr_t)arg + 1;
    for (;;) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sink = x;
    }
    pthread_cleanup_pop(0);
    return NULL;
}
// Back to deferred: a request must wait for a cancellation point again.
static volatile int flag;
static void *back_to_deferred(void *arg) {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL));
    SYS(sem_post(&started));
    while (!flag) sched_yield();
    *(int *)arg = 1;
    pthread_testcancel();
    *(int *)arg = 2;
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads(), passed = 0;
    if (threads > 32) threads = 32; // each of them uses its share of CPU until it is cancelled
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    SYS(sem_init(&started, 0, 0));
    PHASE("computing threads");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(compute, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        while (sem_wait(&started)) EQ(errno, EINTR);
    for (int i = 0; i < threads; i++) OK(pthread_cancel(t[i]));
    for (int i = 0; i < threads; i++) CHECK(t_join(t[i]) == PTHREAD_CANCELED, "thread %d", i);
    EQ(handled, threads);
    PHASE("back to deferred");
    t[0] = t_spawn(back_to_deferred, &passed);
    while (sem_wait(&started)) EQ(errno, EINTR);
    OK(pthread_cancel(t[0]));
    flag = 1;
    CHECK(t_join(t[0]) == PTHREAD_CANCELED, "not cancelled");
    EQ(passed, 1);
    return t_ok("pthread_cancel_async");
}
