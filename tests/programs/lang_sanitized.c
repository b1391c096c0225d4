// To be built with a sanitizer. Argument "leak": main leaks memory; LeakSanitizer finds it at exit
// with a process that shares the memory. Argument "race": two threads write without a lock, as
// ThreadSanitizer reports.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 16, ROUNDS = 100 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long n;
static int racy;
static void *volatile lost;

static void *work(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        char *p = malloc(100 + (size_t)i);
        p[i] = 1;
        if (!racy) pthread_mutex_lock(&mutex);
        n += p[i];
        if (!racy) pthread_mutex_unlock(&mutex);
        free(p);
        pthread_barrier_wait(&barrier);
    }
    return arg;
}
static __attribute__((noinline)) void lose(void) {
    for (int i = 0; i < 10; i++) lost = malloc(4711);
    lost = NULL;
}

int main(int argc, char **argv) {
    pthread_t t[THREADS];
    racy = argc > 1 && !strcmp(argv[1], "race");
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    if (argc > 1 && !strcmp(argv[1], "leak")) lose();
    if (n == THREADS * ROUNDS || racy) puts("ok lang_sanitized");
    return 0;
}
