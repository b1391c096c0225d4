// Signals as in a server: main blocks them, then creates its threads, one of which waits for them
// (sigwait). The others inherit the mask, meet at barriers, and must never handle a signal.
// Argument "every": block all signals.
#include "pthread_test.h"
#include <signal.h>

enum { SIGNALS = 50 };
static pthread_barrier_t barrier;
static sigset_t blocked;
static volatile int stop, leaving;
static int handled;

static void handler(int n) {
    (void)n;
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}
static void check_mask(void) {
    sigset_t mine;
    EQ(pthread_sigmask(SIG_SETMASK, NULL, &mine), 0);
    for (int n = 1; n < 32; n++)
        if (n != SIGKILL && n != SIGSTOP) EQ(sigismember(&mine, n), sigismember(&blocked, n));
}
static void *worker(void *arg) {
    check_mask();
    for (int leave = 0; !leave;) {
        // One thread decides for all.
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) leaving = stop;
        pthread_barrier_wait(&barrier);
        leave = leaving;
    }
    check_mask();
    return arg;
}
static void *waiter(void *arg) {
    int *seen = arg;
    while (*seen < SIGNALS) {
        int n = 0;
        EQ(sigwait(&blocked, &n), 0);
        EQ(n, SIGTERM);
        __atomic_add_fetch(seen, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

int main(int argc, char **argv) {
    t_watchdog();
    long threads = t_threads();
    signal(SIGTERM, handler);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    if (argc > 1 && !strcmp(argv[1], "every")) sigfillset(&blocked);
    EQ(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
    pthread_t t[threads], w;
    int seen = 0;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    w = t_spawn(waiter, &seen);
    for (long i = 0; i < threads; i++) t[i] = t_spawn(worker, NULL);
    for (int i = 0; i < SIGNALS; i++) {
        EQ(kill(getpid(), SIGTERM), 0);
        while (__atomic_load_n(&seen, __ATOMIC_SEQ_CST) <= i) t_sleep_us(100);
    }
    stop = 1;
    for (long i = 0; i < threads; i++) t_join(t[i]);
    t_join(w);
    EQ(handled, 0);
    // Unblocked signals must work as usual.
    EQ(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL), 0);
    EQ(kill(getpid(), SIGTERM), 0);
    EQ(handled, 1);
    return t_ok("signal_block_all");
}
