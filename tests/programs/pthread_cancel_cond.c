// Cancellation of threads blocked in cond_wait and cond_timedwait. The handler runs with the mutex
// held, the condition variable stays usable, and no signal is lost to a cancelled thread. Finally
// all threads are cancelled at once.
#include "pthread_test.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, in = PTHREAD_COND_INITIALIZER;
static int waiting, handled, permits, taken;

static void handler(void *arg) {
    (void)arg;
    EQ(pthread_mutex_lock(&mutex), EDEADLK); // errorcheck: this thread holds it
    handled++;
    OK(pthread_mutex_unlock(&mutex));
}
static void *waiter(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(handler, NULL);
    waiting++;
    OK(pthread_cond_signal(&in));
    struct timespec until = t_after_ms(CLOCK_REALTIME, 100000);
    for (;;) {
        if (arg)
            OK(pthread_cond_timedwait(&cond, &mutex, &until));
        else
            OK(pthread_cond_wait(&cond, &mutex));
    }
    pthread_cleanup_pop(0);
    return NULL;
}
static void unlock(void *arg) { pthread_mutex_unlock(arg); }
static void *taker(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(unlock, &mutex);
    waiting++;
    OK(pthread_cond_signal(&in));
    while (!permits) OK(pthread_cond_wait(&cond, &mutex));
    permits--;
    taken++;
    pthread_cleanup_pop(1);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    pthread_mutexattr_t a;
    OK(pthread_mutexattr_init(&a));
    OK(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutex_init(&mutex, &a));
    for (int round = 0; round < 6; round++) {
        PHASE("storm");
        waiting = handled = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(waiter, (void *)(intptr_t)(i & 1));
        OK(pthread_mutex_lock(&mutex));
        while (waiting < threads) OK(pthread_cond_wait(&in, &mutex));
        // Cancel with the mutex held (handlers queue up for it) or free.
        if (round & 1) OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < threads; i++) OK(pthread_cancel(t[i]));
        if (!(round & 1)) OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < threads; i++) CHECK(t_join(t[i]) == PTHREAD_CANCELED, "thread %d", i);
        EQ(handled, threads);
    }
    for (int round = 0; round < 10; round++) {
        PHASE("half cancelled, half signalled");
        waiting = permits = taken = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(taker, NULL);
        OK(pthread_mutex_lock(&mutex));
        while (waiting < threads) OK(pthread_cond_wait(&in, &mutex));
        OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < threads; i += 2) OK(pthread_cancel(t[i]));
        int cancelled = 0;
        for (int i = 0; i < threads; i++) {
            OK(pthread_mutex_lock(&mutex));
            permits++;
            OK(pthread_cond_signal(&cond));
            OK(pthread_mutex_unlock(&mutex));
        }
        for (int i = 0; i < threads; i++)
            if (t_join(t[i]) == PTHREAD_CANCELED) cancelled++;
        EQ(taken + cancelled, threads);
        CHECK(taken >= threads / 2, "%d of at least %d took theirs", taken, threads / 2);
        EQ(permits, cancelled);
    }
    return t_ok("pthread_cancel_cond");
}
