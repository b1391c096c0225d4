// Create threads that exit at once, faster than they can run, and check that they do not pile up.
// Argument: number of threads. They are created detached, because pthread_detach(3) of glibc 2.36
// may read the memory of a thread that has exited (2 of 400 native runs of 30,000 threads crash).
#include "pthread_test.h"
#include <sys/resource.h>

enum { MOST_MIB = 64 };
static int done;
static void *work(void *arg) {
    __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
    return arg;
}

int main(int argc, char **argv) {
    t_watchdog();
    int n = argc > 1 ? atoi(argv[1]) : 30000;
    pthread_attr_t detached;
    OK(pthread_attr_init(&detached));
    OK(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED));
    for (int i = 0; i < n; i++) {
        pthread_t t;
        OK(pthread_create(&t, &detached, work, NULL));
    }
    struct rusage u;
    SYS(getrusage(RUSAGE_SELF, &u));
    CHECK(u.ru_maxrss / 1024 < MOST_MIB, "%ld MiB", u.ru_maxrss / 1024);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < n) sched_yield();
    return t_ok("process_detached");
}
