// Threads that compute without system calls, and one that repeatedly sleeps. A thread that requests
// its home carrier must get it although the threads running there are sampled all the time
// (--spin=observe).
#include "spin_test.h"

static volatile int stop;
static void *compute(void *arg) {
    volatile unsigned long x = (unsigned long)(uintptr_t)arg;
    while (!stop)
        for (int i = 0; i < 1000; i++) x = x * 6364136223846793005ul + 1;
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() < 8 ? 8 : t_threads();
    if (threads > 32) threads = 32;
    pthread_t t[32];
    for (int round = 0; round < 5; round++) {
        stop = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(compute, (void *)(intptr_t)(i + 1));
        for (int i = 0; i < 8; i++) t_sleep_us(3000);
        stop = 1;
        for (int i = 0; i < threads; i++) t_join(t[i]);
    }
    return t_ok("spin_observe");
}
