// 2000 threads start and exit, created by several threads at once; some are joined and some
// detached. Some block shortly on a mutex that all share.
#include "pthread_test.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int born, gone, per_creator;

static void *child(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    born++;
    OK(pthread_mutex_unlock(&mutex));
    if ((intptr_t)arg % 4 == 0) sched_yield();
    OK(pthread_mutex_lock(&mutex));
    gone++;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}
static void *creator(void *arg) {
    pthread_t t[10];
    for (int i = 0; i < per_creator; i += 10) {
        for (int k = 0; k < 10; k++) t[k] = t_spawn(child, (void *)(intptr_t)k);
        for (int k = 0; k < 10; k++) {
            if (k & 1)
                OK(pthread_detach(t[k]));
            else
                EQ((long)t_join(t[k]), k);
        }
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int creators = t_threads() < 50 ? t_threads() : 50;
    per_creator = (2000 / creators + 9) / 10 * 10;
    PHASE("creators");
    t_run(creators, creator);
    PHASE("waiting for the detached");
    OK(pthread_mutex_lock(&mutex));
    while (gone < creators * per_creator) OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    EQ(born, creators * per_creator);
    EQ(gone, born);
    return t_ok("pthread_churn");
}
