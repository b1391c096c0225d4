// Condition variables with signal and broadcast: every thread that is due a wake-up gets it, and a
// signal with waiters wakes at least one.
#include "pthread_test.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, all_in = PTHREAD_COND_INITIALIZER;
static int threads, rounds, waiting, permits, generation, left, grabs;

// signal: main hands out permits one by one while all threads wait.
static void *take_permits(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < rounds; i++) {
        waiting++;
        OK(pthread_cond_signal(&all_in));
        while (!permits) OK(pthread_cond_wait(&cond, &mutex));
        permits--;
        grabs++;
        waiting--;
    }
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}

// broadcast: a generation counter releases all threads at once, many times.
static void *follow(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    for (int i = 1; i <= rounds; i++) {
        if (++waiting == threads) OK(pthread_cond_signal(&all_in));
        while (generation < i) OK(pthread_cond_wait(&cond, &mutex));
        EQ(generation, i); // main cannot continue before all have left
        if (--left == 0) OK(pthread_cond_signal(&all_in));
    }
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    pthread_t *t = calloc((size_t)threads, sizeof *t);

    PHASE("signal");
    rounds = t_share(4000, threads);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(take_permits, NULL);
    for (int i = 0; i < threads * rounds; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (waiting <= permits) OK(pthread_cond_wait(&all_in, &mutex));
        permits++;
        if (i & 1) OK(pthread_cond_signal(&cond)); // inside and outside of the critical section
        OK(pthread_mutex_unlock(&mutex));
        if (!(i & 1)) OK(pthread_cond_signal(&cond));
    }
    for (int i = 0; i < threads; i++) t_join(t[i]);
    EQ(grabs, threads * rounds);
    EQ(permits, 0);

    PHASE("broadcast");
    rounds = t_share(10000, threads);
    waiting = 0;
    for (int i = 0; i < threads; i++) t[i] = t_spawn(follow, NULL);
    for (int i = 1; i <= rounds; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (waiting < threads) OK(pthread_cond_wait(&all_in, &mutex));
        waiting = 0;
        left = threads;
        generation = i;
        OK(pthread_cond_broadcast(&cond));
        while (left) OK(pthread_cond_wait(&all_in, &mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
    for (int i = 0; i < threads; i++) t_join(t[i]);
    OK(pthread_cond_destroy(&cond));
    OK(pthread_cond_destroy(&all_in));
    return t_ok("pthread_cond_signal");
}
