// When all other threads have ended, the process has a single kernel thread again. Code that waits
// for that, as before a fork or before confining the process, must not wait forever. Repeated
// several times; in between, threads compute and wait for each other.
#include "pthread_test.h"
#include <dirent.h>

static pthread_barrier_t barrier;

static int kernel_threads(void) {
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
static void *work(void *arg) {
    for (int i = 0; i < 20; i++) {
        for (int64_t end = t_now(CLOCK_MONOTONIC) + 300000; t_now(CLOCK_MONOTONIC) < end;) {}
        pthread_barrier_wait(&barrier);
    }
    return arg;
}
int main(void) {
    int threads = t_threads();
    threads = threads > 16 ? 16 : threads;
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < 5; i++) {
        t_run(threads, work);
        if (i == 2) { // a timed wait, alone
            pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
            pthread_cond_t c = PTHREAD_COND_INITIALIZER;
            struct timespec until = t_after_ms(CLOCK_REALTIME, 100);
            OK(pthread_mutex_lock(&m));
            int r;
            while ((r = pthread_cond_timedwait(&c, &m, &until)) == 0) {}
            EQ(r, ETIMEDOUT);
        }
        while (kernel_threads() > 1) t_sleep_ms(1);
    }
    puts("ok process_alone");
}
