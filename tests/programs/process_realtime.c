// Real-time threads get a mutex by priority, and a waiting one runs before threads of a lower
// class.
#include "pthread_test.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int order[8], n;

static volatile pid_t waiter;

static void *work(void *arg) {
    waiter = (pid_t)syscall(SYS_gettid);
    OK(pthread_mutex_lock(&mutex));
    order[n++] = (int)(intptr_t)arg;
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}
static void *busy(void *arg) {
    volatile int *stop = arg;
    while (!*stop)
        for (volatile int k = 0; k < 10000; k++) {}
    return NULL;
}

int main(void) {
    t_watchdog();
    static const int priorities[] = {5, 15, 10, 12};
    static volatile int stop;
    pthread_t t[8], b[8];
    for (int i = 0; i < 8; i++) b[i] = t_spawn(busy, (void *)&stop);
    for (int round = 0; round < 5; round++) {
        n = 0;
        OK(pthread_mutex_lock(&mutex));
        for (int i = 0; i < 4; i++) {
            pthread_attr_t a;
            struct sched_param p = {priorities[i]};
            OK(pthread_attr_init(&a));
            OK(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED));
            OK(pthread_attr_setschedpolicy(&a, SCHED_FIFO));
            OK(pthread_attr_setschedparam(&a, &p));
            waiter = 0;
            OK(pthread_create(&t[i], &a, work, (void *)(intptr_t)priorities[i]));
            // wait until it sleeps for a while
            for (int asleep = 0; asleep < 5;
                 asleep = waiter && t_state(waiter) == 'S' ? asleep + 1 : 0)
                t_sleep_ms(2);
        }
        OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < 4; i++) t_join(t[i]);
        EQ(order[0], 15);
        EQ(order[1], 12);
        EQ(order[2], 10);
        EQ(order[3], 5);
    }
    stop = 1;
    for (int i = 0; i < 8; i++) t_join(b[i]);
    return t_ok("process_realtime");
}
