// Threads that are made, detached and end at once, one after the other, faster than they can run:
// they do not pile up. Argument: how many.
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
    for (int i = 0; i < n; i++) {
        pthread_t t;
        OK(pthread_create(&t, NULL, work, NULL));
        OK(pthread_detach(t));
    }
    struct rusage u;
    SYS(getrusage(RUSAGE_SELF, &u));
    CHECK(u.ru_maxrss / 1024 < MOST_MIB, "%ld MiB", u.ru_maxrss / 1024);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < n) sched_yield();
    return t_ok("process_detached");
}
