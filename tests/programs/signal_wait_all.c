// Threads that block all signals and wait for any of them, while more threads compute than there
// are CPUs. They must receive only signals that the program sends.
#include "pthread_test.h"
#include <signal.h>
#include <sys/signalfd.h>

static volatile int stop;
static int rounds;

static void compute(int us) {
    for (int64_t end = t_now(CLOCK_MONOTONIC) + us * 1000; t_now(CLOCK_MONOTONIC) < end;) {}
}
static void *busy(void *arg) {
    while (!stop) compute(100);
    return arg;
}
static void *waits(void *arg) {
    int how = (int)(intptr_t)arg % 3;
    sigset_t all;
    siginfo_t info;
    struct timespec t = t_ts(1000);
    sigfillset(&all);
    OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    int fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    SYS(fd);
    for (int i = 0; i < rounds; i++) {
        struct signalfd_siginfo from;
        compute(4000); // longer than a slice
        if (how == 0) ERR(sigtimedwait(&all, &info, &t), EAGAIN);
        if (how == 1) ERR(sigtimedwait(&all, NULL, &t), EAGAIN);
        if (how == 2) ERR(read(fd, &from, sizeof from), EAGAIN);
        int sig = i % 3 == 0 ? SIGURG : i % 3 == 1 ? SIGTERM : SIGRTMAX - 1, got;
        OK(pthread_sigqueue(pthread_self(), sig, (union sigval){.sival_int = i}));
        if (how == 2) {
            EQ(read(fd, &from, sizeof from), sizeof from);
            EQ(from.ssi_signo, sig);
            EQ(from.ssi_int, i);
        } else if (i % 2) {
            EQ(sigwaitinfo(&all, &info), sig);
            EQ(info.si_value.sival_int, i);
        } else {
            OK(sigwait(&all, &got));
            EQ(got, sig);
        }
    }
    close(fd);
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(120, threads / 4 + 1);
    pthread_t t[1024], w[6];
    for (int i = 0; i < threads; i++) t[i] = t_spawn(busy, NULL);
    for (int i = 0; i < 6; i++) w[i] = t_spawn(waits, (void *)(intptr_t)i);
    for (int i = 0; i < 6; i++) t_join(w[i]);
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_wait_all");
}
