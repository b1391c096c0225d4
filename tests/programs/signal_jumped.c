// Threads with an alternate stack that have left a handler on it by siglongjmp once, and then meet
// at a barrier: they can still be switched in user space.
#include "pthread_test.h"
#include <setjmp.h>
#include <signal.h>

static pthread_barrier_t barrier;
static __thread sigjmp_buf env;

static void handler(int sig) {
    (void)sig;
    siglongjmp(env, 1);
}
static void *work(void *arg) {
    stack_t s = {.ss_sp = malloc(65536), .ss_size = 65536};
    SYS(sigaltstack(&s, NULL));
    if (!sigsetjmp(env, 1)) {
        OK(pthread_kill(pthread_self(), SIGUSR1));
        FAIL("not left");
    }
    for (int i = 0; i < 4000; i++) pthread_barrier_wait(&barrier);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    SYS(sigaction(SIGUSR1, &a, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, NULL);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_jumped");
}
