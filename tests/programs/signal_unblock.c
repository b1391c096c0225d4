// All signals are sent to threads that block them, then unblocked at once. Each is handled once;
// queued ones in order of their numbers. A handler whose alternate stack is not writable turns into
// SIGSEGV, which the program survives.
#include "pthread_test.h"
#include <signal.h>

static __thread volatile int times[65], last_queued, unordered, segv;
static pthread_barrier_t barrier;
static volatile int stop;
static char *stack;
enum { STACK = 65536 };

// Exclude libc's own signals, and those that cancel each other.
static int is_ours(int sig) {
    return sig != SIGKILL && sig != 32 && sig != 33 && (sig < SIGCONT || sig > SIGTTOU);
}
static void handler(int sig) {
    times[sig]++;
    if (sig >= SIGRTMIN) {
        unordered += sig < last_queued;
        last_queued = sig;
    }
}
static void all_signals(sigset_t *set) {
    sigemptyset(set);
    for (int sig = 1; sig <= 64; sig++)
        if (is_ours(sig)) sigaddset(set, sig);
}
static void *work(void *arg) {
    sigset_t all;
    all_signals(&all);
    for (int round = 1; round <= t_share(60, t_threads()) + 1; round++) {
        pthread_barrier_wait(&barrier);
        OK(pthread_sigmask(SIG_BLOCK, &all, NULL));
        for (int sig = 64; sig >= 1; sig--)
            if (is_ours(sig))
                OK(pthread_sigqueue(pthread_self(), sig, (union sigval){.sival_int = sig}));
        if (round % 2) pthread_barrier_wait(&barrier);
        last_queued = 0;
        OK(pthread_sigmask(SIG_UNBLOCK, &all, NULL));
        for (int sig = 1; sig <= 64; sig++)
            if (is_ours(sig))
                CHECK(times[sig] == round, "signal %d was handled %d times of %d", sig, times[sig],
                      round);
        EQ(unordered, 0);
        if (!(round % 2)) pthread_barrier_wait(&barrier);
    }
    return arg;
}

static void on_segv(int sig) {
    (void)sig;
    segv++;
}
static void on_hup(int sig) { times[sig]++; }
static void *protect(void *arg) {
    while (!stop) {
        SYS(mprotect(stack, STACK, PROT_READ));
        SYS(mprotect(stack, STACK, PROT_READ | PROT_WRITE));
    }
    return arg;
}
static void *protected(void *arg) {
    stack_t s = {.ss_sp = stack, .ss_size = STACK};
    SYS(sigaltstack(&s, NULL));
    times[SIGHUP] = 0;
    for (int i = 0; i < 3000; i++) OK(pthread_kill(pthread_self(), SIGHUP));
    CHECK(times[SIGHUP] + segv >= 3000, "%d and %d of 3000", times[SIGHUP], segv);
    s.ss_flags = SS_DISABLE;
    SYS(sigaltstack(&s, NULL));
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() > 64 ? 64 : t_threads();
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    all_signals(&a.sa_mask);
    for (int sig = 1; sig <= 64; sig++)
        if (is_ours(sig)) SYS(sigaction(sig, &a, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    pthread_t t[64];
    PHASE("unblock");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, NULL);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    PHASE("a protected stack");
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction s = {.sa_handler = on_segv},
                     h = {.sa_handler = on_hup, .sa_flags = SA_ONSTACK};
    SYS(sigaction(SIGSEGV, &s, NULL));
    SYS(sigaction(SIGHUP, &h, NULL));
    t[0] = t_spawn(protect, NULL);
    t[1] = t_spawn(protected, NULL);
    t_join(t[1]);
    stop = 1;
    t_join(t[0]);
    return t_ok("signal_unblock");
}
