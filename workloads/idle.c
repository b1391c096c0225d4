/* SPDX-License-Identifier: MIT */
// Programs with almost nothing to do, to measure the CPU time that they use all the same.
//
//     idle wait --threads 8 --seconds 1
//
// wait: the threads wait for ever. timer: every 10 ms a thread is woken, computes for --work
// iterations, and waits again. Prints one line of JSON, which counts from when all threads wait.
#include <pthread.h>

#include "sync.h"

enum { TICK_NS = 10000000, SETTLE_NS = 100000000 };

static struct options options;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER, tick = PTHREAD_COND_INITIALIZER;
static long turns, taken;
static uint64_t sum = 1;

static void *start(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (taken == turns)
            pthread_cond_wait(&turn, &lock);
        taken++;
        sum = compute(sum, options.work);
    }
    return NULL;
}

static struct timespec after(long ns) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void pause_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static void tick_for(double seconds) {
    pthread_mutex_lock(&lock);
    for (double end = now() + seconds; now() < end;) {
        struct timespec t = after(TICK_NS);
        while (pthread_cond_timedwait(&tick, &lock, &t) != ETIMEDOUT)
            ; // no thread signals it
        turns++;
        pthread_cond_signal(&turn);
    }
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    options = parse(argc, argv);
    int ticks = !strcmp(options.workload, "timer");
    if (!ticks && strcmp(options.workload, "wait"))
        fail("unknown workload %s", options.workload);
    for (long i = 0; i < options.threads; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, start, NULL);
        if (error)
            fail("thread %ld of %ld cannot be created: %s", i + 1, options.threads,
                 strerror(error));
    }
    pause_for(SETTLE_NS * 1e-9);
    count_from_here();
    double begun = now();
    if (ticks)
        tick_for(options.seconds);
    else
        pause_for(options.seconds);
    double seconds = now() - begun;
    struct used used = used_from_there();
    printf("{\"workload\": \"%s\", \"threads\": %ld, \"rounds\": %ld, \"seconds\": %.6f, "
           "\"cpu_percent\": %.4f, "
           "\"cpu_seconds\": %.6f, \"voluntary\": %ld, \"involuntary\": %ld}\n",
           options.workload, options.threads, turns, seconds, 100 * used.cpu_seconds / seconds,
           used.cpu_seconds, used.voluntary, used.involuntary);
    return 0;
}
