/* A target for `lissom record`. Prints "ready" once all of its threads have begun.
 *     lock MS     thread "holder" holds `the_lock` for MS milliseconds, again and again, and thread
 *                 "waiter" waits for it meanwhile, until the process is killed
 *     deadlock    threads "left" and "right" hold a lock each and want the other's
 *     once        one thread wakes another by a condition variable, and the program exits with 7 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t begun;
static long milliseconds = 50;
static volatile int turn;

static void rest(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *holds(void *unused) {
    for (;;) {
        pthread_mutex_lock(&the_lock);
        turn = 1;
        rest(milliseconds);
        pthread_mutex_unlock(&the_lock);
        while (turn) rest(1);
    }
    return unused;
}

/* Ask for the lock only while the other thread has it. */
static void *waits(void *unused) {
    for (;;) {
        while (!turn) rest(1);
        pthread_mutex_lock(&the_lock);
        turn = 0;
        pthread_mutex_unlock(&the_lock);
    }
    return unused;
}

static void *left(void *unused) {
    pthread_mutex_lock(&left_lock);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&right_lock);
    return unused;
}

static void *right(void *unused) {
    pthread_mutex_lock(&right_lock);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&left_lock);
    return unused;
}

static void *is_woken(void *unused) {
    pthread_mutex_lock(&the_lock);
    while (!turn) pthread_cond_wait(&changed, &the_lock);
    pthread_mutex_unlock(&the_lock);
    return unused;
}

static void *wakes(void *unused) {
    rest(30);
    pthread_mutex_lock(&the_lock);
    turn = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&the_lock);
    rest(30);
    return unused;
}

static pthread_t start(const char *name, void *(*work)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL)) {
        perror("pthread_create");
        exit(1);
    }
    pthread_setname_np(thread, name);
    return thread;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (argc > 2) milliseconds = atol(argv[2]);
    if (strcmp(what, "once") == 0) {
        pthread_t a = start("woken", is_woken), b = start("waker", wakes);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        return 7;
    }
    if (strcmp(what, "deadlock") == 0) {
        pthread_barrier_init(&begun, NULL, 3);
        start("left", left);
        start("right", right);
        pthread_barrier_wait(&begun);
        rest(100); /* for both to block; a case that records too early would notice */
    } else {
        start("holder", holds);
        start("waiter", waits);
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
