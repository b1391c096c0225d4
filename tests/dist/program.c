/* SPDX-License-Identifier: MIT
 *
 * Threads that take turns; exits with the given exit code, or by the given signal. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, TURNS = 1000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static unsigned turns;

static void *work(void *unused) {
    for (unsigned i = 0; i < TURNS; i++) {
        pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&lock);
        turns++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, NULL)) return 1;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    const char *preload = getenv("LD_PRELOAD");
    printf("%d threads, %u turns\nLD_PRELOAD is %s\n", THREADS, turns,
           preload ? preload : "not set");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "signal") == 0) raise(SIGTERM);
    return argc > 1 ? atoi(argv[1]) : 0;
}
