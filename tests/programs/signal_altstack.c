// Each thread has its own sigaltstack: the handler runs on it and sees SS_ONSTACK, and handles a
// stack overflow there.
#include "pthread_test.h"
#include <setjmp.h>
#include <signal.h>

enum { SIZE = 65536 };
static pthread_barrier_t barrier;
static __thread char *stack;
static __thread int handled;
static __thread sigjmp_buf env;
static int rounds;

static void handler(int sig) {
    char here;
    (void)sig;
    CHECK(stack && &here >= stack && &here < stack + SIZE,
          "handler not on the thread's alternate stack");
    stack_t now;
    SYS(sigaltstack(NULL, &now));
    CHECK(now.ss_flags & SS_ONSTACK, "SS_ONSTACK missing");
    CHECK(now.ss_sp == stack, "other stack reported");
    handled++;
}
static void overflow(int sig, siginfo_t *si, void *ctx) {
    char here;
    (void)sig;
    (void)si;
    (void)ctx;
    CHECK(stack && &here >= stack && &here < stack + SIZE,
          "SIGSEGV not on the thread's alternate stack");
    siglongjmp(env, 1);
}
// n is never negative, but the compiler does not know that.
static int __attribute__((noinline)) recurse(int n) {
    volatile char frame[4096];
    frame[0] = (char)n;
    frame[4095] = (char)n;
    return n < 0 ? 0 : recurse(n + 1) + frame[0];
}
static void *work(void *arg) {
    stack = malloc(SIZE);
    stack_t ss = {.ss_sp = stack, .ss_size = SIZE}, old;
    SYS(sigaltstack(&ss, &old));
    CHECK(old.ss_flags & SS_DISABLE, "a new thread has an alternate stack");
    for (int i = 1; i <= rounds; i++) {
        pthread_barrier_wait(&barrier);
        OK(pthread_kill(pthread_self(), SIGUSR1));
        EQ(handled, i);
        SYS(sigaltstack(NULL, &old));
        CHECK(old.ss_sp == stack && !(old.ss_flags & (SS_DISABLE | SS_ONSTACK)),
              "alternate stack lost");
    }
    if (sigsetjmp(env, 1) == 0)
        recurse(0);
    else
        handled = -1;
    EQ(handled, -1);
    pthread_barrier_wait(&barrier);
    ss.ss_flags = SS_DISABLE;
    SYS(sigaltstack(&ss, NULL));
    free(stack);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(3000, threads);
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    sa.sa_sigaction = overflow;
    sa.sa_flags = SA_ONSTACK | SA_SIGINFO;
    SYS(sigaction(SIGSEGV, &sa, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    pthread_attr_t a;
    OK(pthread_attr_init(&a));
    OK(pthread_attr_setstacksize(&a, 256 * 1024));
    pthread_t *t = calloc(1024, sizeof *t);
    PHASE("threads");
    for (int i = 0; i < threads; i++) OK(pthread_create(&t[i], &a, work, NULL));
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_altstack");
}
