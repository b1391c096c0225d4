// pthread_once runs the function once while all other threads wait for its end. It runs again if
// the first run was cancelled.
#include "pthread_test.h"

static pthread_once_t once[50], cancelled = PTHREAD_ONCE_INIT;
static int ran[50], current, threads, in_init;
static pthread_barrier_t barrier;

static void init(void) {
    sched_yield();
    if (current % 10 == 0) t_sleep_ms(2);
    ran[current]++;
}
static void *work(void *arg) {
    for (int i = 0; i < 50; i++) {
        pthread_barrier_wait(&barrier);
        if (arg == 0) current = i;
        pthread_barrier_wait(&barrier);
        OK(pthread_once(&once[i], init));
        EQ(ran[i], 1);
    }
    return arg;
}
static void cancelled_init(void) {
    if (__atomic_add_fetch(&in_init, 1, __ATOMIC_SEQ_CST) == 1)
        for (;;) t_sleep_ms(1);
}
static void *cancelled_user(void *arg) {
    OK(pthread_once(&cancelled, cancelled_init));
    return arg;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    for (int i = 0; i < 50; i++) once[i] = (pthread_once_t)PTHREAD_ONCE_INIT;
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    PHASE("all at once");
    t_run(threads, work);
    PHASE("cancelled in the init routine");
    pthread_t first = t_spawn(cancelled_user, NULL);
    while (!__atomic_load_n(&in_init, __ATOMIC_SEQ_CST)) t_sleep_us(100);
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(cancelled_user, NULL);
    t_sleep_ms(5);
    OK(pthread_cancel(first));
    CHECK(t_join(first) == PTHREAD_CANCELED, "not cancelled");
    for (int i = 0; i < threads; i++) t_join(t[i]);
    EQ(in_init, 2);
    return t_ok("pthread_once");
}
