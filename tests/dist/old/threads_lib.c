/* SPDX-License-Identifier: MIT
 *
 * A library with a thread of its own, which sums up given numbers. EARLY: start the thread when the
 * library is loaded. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int given, sum;

static void *add(void *unused) {
    pthread_mutex_lock(&lock);
    for (int n = 0; n >= 0;) {
        while (!given) pthread_cond_wait(&changed, &lock);
        n = given;
        sum += n > 0 ? n : 0;
        given = 0;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

#ifdef EARLY
__attribute__((constructor))
#endif
int threads_start(void)
{
    return pthread_create(&thread, NULL, add, NULL);
}

static void give(int n) {
    pthread_mutex_lock(&lock);
    while (given) pthread_cond_wait(&changed, &lock);
    given = n;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int threads_sum(int to) {
    for (int n = 1; n <= to; n++) give(n);
    give(-1);
    pthread_join(thread, NULL);
    return sum;
}
