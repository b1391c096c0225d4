// Threads of PTHREAD_STACK_MIN that use most of their stacks: natively only they write there. SIZE:
// bytes used by each.
#include "pthread_test.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long n;
static long use;

static void *work(void *arg) {
    volatile char b[use];
    for (int r = 0; r < 30; r++) {
        for (int k = 0; k < 200000; k++) b[k % use] = (char)(b[k % use] + k);
        pthread_mutex_lock(&mutex);
        n++;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

int main(void) {
    use = t_env("SIZE", 8000);
    pthread_attr_t a;
    pthread_t t[32];
    OK(pthread_attr_init(&a));
    OK(pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN));
    for (int i = 0; i < 32; i++) OK(pthread_create(&t[i], &a, work, NULL));
    for (int i = 0; i < 32; i++) OK(pthread_join(t[i], NULL));
    printf("%ld\n", n);
    return 0;
}
