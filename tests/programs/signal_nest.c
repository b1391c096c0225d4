// A handler that raises its own signal: the signal is pending until the handler returns, so the
// stack does not grow. With SA_NODEFER the handler nests, as deep as it wants.
#include "pthread_test.h"
#include <signal.h>

enum { TIMES = 3000, DEEP = 20 };
static __thread volatile int n, depth, deepest, limit;
static __thread char *low, *high;

static void handler(int sig) {
    char *here = __builtin_frame_address(0);
    if (!low || here < low) low = here;
    if (here > high) high = here;
    if (++depth > deepest) deepest = depth;
    if (++n < limit) {
        if (n % 2)
            OK(pthread_kill(pthread_self(), sig));
        else
            SYS(tgkill(getpid(), gettid(), sig));
    }
    depth--;
}
static void storm(int sig, int times, int nests) {
    n = depth = deepest = 0;
    low = high = NULL;
    limit = times;
    OK(pthread_kill(pthread_self(), sig));
    CHECK(n == times, "signal %d: %d times of %d", sig, n, times);
    EQ(deepest, nests);
    if (nests == 1)
        CHECK(high - low < 256, "signal %d: %ld bytes of stack", sig, (long)(high - low));
}
static const int signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE, SIGTRAP,
                              SIGSYS,  SIGUSR1, SIGURG, SIGCHLD};
static void *work(void *arg) {
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        storm(signals[i], t_share(TIMES, t_threads()), 1);
    return arg;
}
static void *nest(void *arg) {
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) storm(signals[i], DEEP, DEEP);
    return arg;
}
static void all(void *(*f)(void *), int flags) {
    pthread_t t[1024];
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        SYS(sigaction(signals[i], &a, NULL));
    for (int i = 0; i < t_threads(); i++) t[i] = t_spawn(f, NULL);
    f(NULL);
    for (int i = 0; i < t_threads(); i++) t_join(t[i]);
}

int main(void) {
    t_watchdog();
    PHASE("deferred");
    all(work, 0);
    PHASE("nested");
    all(nest, SA_NODEFER);
    return t_ok("signal_nest");
}
