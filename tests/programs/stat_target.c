/* A target for `lissom stat`, until it is killed: threads that wait for each other at a known
 * place.
 *     barrier N   N threads wait at `the_barrier`, in `wait_here`
 *     spin N      N threads wait in the loop of `spin_here` for a word that is never written
 *     come N      N threads compute for a moment and exit, again and again
 *     deadlock    two threads hold a lock each and want the other's; natively
 *     idle        one thread sleeps
 * Prints "ready" once all threads have begun. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

pthread_barrier_t the_barrier;
volatile int the_word;

__attribute__((noinline)) void wait_here(void) {
    pthread_barrier_wait(&the_barrier);
    __asm__ volatile(""); /* not a tail call: this function stays on the stack */
}

__attribute__((noinline)) void spin_here(void) {
    while (!the_word) { /* most samples follow one of the two pauses, in two lines */
        __builtin_ia32_pause();
        __builtin_ia32_pause();
    }
}

static void *at_barrier(void *unused) {
    (void)unused;
    for (;;) {
        for (volatile int i = 0; i < 1000; i++);
        wait_here();
    }
    return NULL;
}

static void *spins(void *unused) {
    (void)unused;
    spin_here();
    return NULL;
}

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static pid_t thread_a, thread_b;

static void *wants_a(void *unused) {
    (void)unused;
    thread_a = gettid();
    pthread_mutex_lock(&lock_b);
    pthread_barrier_wait(&the_barrier);
    pthread_mutex_lock(&lock_a);
    return NULL;
}

static void *wants_b(void *unused) {
    (void)unused;
    thread_b = gettid();
    pthread_mutex_lock(&lock_a);
    pthread_barrier_wait(&the_barrier);
    pthread_mutex_lock(&lock_b);
    return NULL;
}

/* Wait until the kernel has put the thread to sleep at the futex. */
static void await_waiter(pid_t thread, const void *futex) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
    for (long number = -1, address = 0; number != SYS_futex || (void *)address != futex;) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(text, sizeof text, file)) {
            perror(path);
            exit(1);
        }
        fclose(file);
        /* A running thread has no numbers there. */
        if (sscanf(text, "%ld %lx", &number, (unsigned long *)&address) != 2) number = -1;
    }
}

static void start(void *(*work)(void *)) {
    pthread_t t;
    if (pthread_create(&t, NULL, work, NULL)) {
        perror("pthread_create");
        exit(1);
    }
}

static void *computes(void *unused) {
    (void)unused;
    for (volatile int i = 0; i < 50 * 1000 * 1000; i++);
    return NULL;
}

static void come_and_go(unsigned n) {
    pthread_t threads[64];
    n = n < 64 ? n : 64;
    for (;;) {
        for (unsigned i = 0; i < n; i++)
            if (pthread_create(&threads[i], NULL, computes, NULL)) abort();
        for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    void *(*work)(void *) = strcmp(what, "barrier") == 0 ? at_barrier
                            : strcmp(what, "spin") == 0  ? spins
                                                         : NULL;
    bool deadlock = strcmp(what, "deadlock") == 0;
    pthread_barrier_init(&the_barrier, NULL, deadlock ? 3 : n);
    for (unsigned i = 0; work && i < n; i++) start(work);
    if (deadlock) {
        start(wants_a);
        start(wants_b);
        pthread_barrier_wait(&the_barrier);
        await_waiter(thread_a, &lock_a);
        await_waiter(thread_b, &lock_b);
    }
    puts("ready");
    fflush(stdout);
    if (strcmp(what, "come") == 0) come_and_go(n);
    for (;;) pause();
}
