// Threads with different signal masks that wait for each other, compute and change their masks. No
// handler runs in a thread that blocks its signal, and no signal is lost. A thread reads its own
// mask, and SIGPIPE is pending for the thread that wrote.
#include "pthread_test.h"
#include <signal.h>
#include <sys/time.h>

enum { MOST = 256, SIGNALS = 4 };
static const int directed[SIGNALS] = {SIGUSR1, SIGUSR2, SIGQUIT, 40};
static int threads, rounds;
static pthread_t thread[MOST];
static pthread_barrier_t barrier, begin;
static int sent[MOST], handled[MOST]; // signal 40, which is counted
static __thread sigset_t mine;
static __thread int me = -1;

static void handler(int sig) {
    CHECK(me < 0 || !sigismember(&mine, sig), "signal %d in a thread that blocks it", sig);
    if (sig == 40) __atomic_fetch_add(&handled[me], 1, __ATOMIC_SEQ_CST);
}

// Set a random mask. `mine` has to be valid for handlers at any time during the change.
static void set_mask(uint64_t *state) {
    sigset_t new, old, read;
    sigemptyset(&new);
    for (int i = 0; i < SIGNALS; i++)
        if (t_rand(state) % 2) sigaddset(&new, directed[i]);
    if (t_rand(state) % 2) sigaddset(&new, SIGPROF);
    if (me % 2) sigaddset(&new, SIGPIPE);
    old = mine;
    sigset_t both;
    sigandset(&both, &new, &old); // blocked before and after: only these are certain meanwhile
    mine = both;
    OK(pthread_sigmask(SIG_SETMASK, &new, NULL));
    mine = new;
    OK(pthread_sigmask(SIG_SETMASK, NULL, &read));
    for (int n = 1; n < 64; n++)
        if (n != 32 && n != 33)
            CHECK(sigismember(&read, n) == sigismember(&new, n), "signal %d in the mask", n);
}

static void write_to_nobody(void) {
    int end[2];
    sigset_t pipe_only;
    struct timespec none = {0, 0};
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    SYS(pipe(end));
    close(end[0]);
    ERR(write(end[1], "x", 1), EPIPE);
    close(end[1]);
    EQ(sigtimedwait(&pipe_only, NULL, &none), SIGPIPE);
    ERR(sigtimedwait(&pipe_only, NULL, &none), EAGAIN);
}

static void meet(void) {
    int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void *work(void *arg) {
    me = (int)(intptr_t)arg;
    uint64_t state = (uint64_t)t_seed_value + (uint64_t)me * 7919;
    sigemptyset(&mine);
    pthread_barrier_wait(&begin);
    for (int i = 0; i < rounds; i++) {
        if (t_rand(&state) % 4 == 0) set_mask(&state);
        int to = (int)(t_rand(&state) % (uint32_t)threads), which = (int)(t_rand(&state) % SIGNALS);
        if (directed[which] == 40) __atomic_fetch_add(&sent[to], 1, __ATOMIC_SEQ_CST);
        OK(pthread_kill(thread[to], directed[which]));
        switch (t_rand(&state) % 5) {
        case 0: // sometimes until the slice ends
            for (volatile uint32_t k = t_rand(&state) % 8 ? 50000 : 4000000; k > 0; k--) {}
            break;
        case 1: sched_yield(); break;
        case 2:
            if (me % 2 && sigismember(&mine, SIGPIPE)) write_to_nobody();
            break;
        case 3: SYS(kill(getpid(), SIGUSR1)); break; // for any thread that does not block it
        }
        meet();
    }
    sigset_t none;
    sigemptyset(&none);
    mine = none;
    OK(pthread_sigmask(SIG_SETMASK, &none, NULL));
    meet(); // all have been sent
    while (__atomic_load_n(&handled[me], __ATOMIC_SEQ_CST) < sent[me]) sched_yield();
    meet();
    return NULL;
}

int main(void) {
    t_watchdog();
    t_seed();
    threads = t_threads() < MOST ? t_threads() : MOST;
    rounds = t_share(6400, threads);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (int i = 0; i < SIGNALS; i++) SYS(sigaction(directed[i], &action, NULL));
    SYS(sigaction(SIGPROF, &action, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    OK(pthread_barrier_init(&begin, NULL, (unsigned)threads + 1));
    struct itimerval every = {{0, 2000}, {0, 2000}};
    SYS(setitimer(ITIMER_PROF, &every, NULL));
    sigset_t all; // main receives none of them
    sigfillset(&all);
    for (int i = 0; i < threads; i++) thread[i] = t_spawn(work, (void *)(intptr_t)i);
    OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    pthread_barrier_wait(&begin);
    for (int i = 0; i < threads; i++) t_join(thread[i]);
    for (int i = 0; i < threads; i++) EQ(handled[i], sent[i]);
    return t_ok("signal_masks");
}
