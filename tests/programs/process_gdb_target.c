// The program that process_gdb.sh attaches to: threads at barriers, in waits and computing, until a
// file named "stop" appears. Prints "ready PID" when all run.
#include "pthread_test.h"
#include <sys/prctl.h>

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int stop, decided;
static int in, rounds;

static void *work(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    in++;
    OK(pthread_cond_broadcast(&cond));
    if ((intptr_t)arg & 1) {
        while (!stop) OK(pthread_cond_wait(&cond, &mutex));
        OK(pthread_mutex_unlock(&mutex));
        return arg;
    }
    OK(pthread_mutex_unlock(&mutex));
    do {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            decided = stop;
            rounds++;
        }
        pthread_barrier_wait(&barrier);
    } while (!decided);
    return arg;
}
// Place for a debugger's breakpoint.
void __attribute__((noinline)) checkpoint(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }

int main(int argc, char **argv) {
    (void)argv;
    t_watchdog();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    int threads = t_threads() & ~1;
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads / 2));
    pthread_t *t = calloc(1024, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    OK(pthread_mutex_lock(&mutex));
    while (in < threads) OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    checkpoint(threads);
    // with any argument, do not wait for the file
    while (argc < 2 && access("stop", F_OK)) t_sleep_ms(5);
    OK(pthread_mutex_lock(&mutex));
    stop = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < threads; i++) t_join(t[i]);
    CHECK(rounds > 0, "no rounds");
    return t_ok("process_gdb_target");
}
