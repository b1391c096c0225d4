// Eight threads that have met at a barrier and then wait forever, for inspection by a debugger.
#include "pthread_test.h"

enum { THREADS = 8 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int waiting, go;

__attribute__((noinline)) void waits_for_ever(void) {
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (!go) OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
}
static void *work(void *arg) {
    for (int i = 0; i < 300; i++) pthread_barrier_wait(&barrier);
    waits_for_ever();
    return arg;
}

int main(void) {
    OK(pthread_barrier_init(&barrier, NULL, THREADS));
    for (int i = 0; i < THREADS; i++) t_spawn(work, NULL);
    for (int n = 0; n < THREADS;) {
        t_sleep_ms(10);
        OK(pthread_mutex_lock(&mutex));
        n = waiting;
        OK(pthread_mutex_unlock(&mutex));
    }
    t_sleep_ms(20);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
