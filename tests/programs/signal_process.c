// Process-directed signals are handled once each by a thread that does not block them. If all
// threads block them, sigwait, sigwaitinfo, sigtimedwait and signalfd receive them. New threads
// inherit masks, and each thread has its own.
#include "pthread_test.h"
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/signalfd.h>

static sem_t handled, sem, ready;
static pthread_t only;
static int threads, wrong, got[3];
static sigset_t set;

static void handler(int sig) {
    (void)sig;
    int e = errno;
    if (!pthread_equal(pthread_self(), only)) wrong = 1;
    sem_post(&handled);
    errno = e;
}
static void *waits(void *arg) {
    while (sem_wait(&sem)) EQ(errno, EINTR);
    return arg;
}
static void *unblocks(void *arg) {
    only = pthread_self();
    OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
    SYS(sem_post(&ready));
    while (sem_wait(&sem)) EQ(errno, EINTR);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    return arg;
}
static void *sigwaiter(void *arg) {
    int sig;
    for (int i = 0; i < 20; i++) {
        OK(sigwait(&set, &sig));
        EQ(sig, SIGUSR1);
        got[0]++;
        SYS(sem_post(&handled));
    }
    siginfo_t si;
    while (sigwaitinfo(&set, &si) == -1) EQ(errno, EINTR);
    EQ(si.si_value.sival_int, 4711);
    EQ(si.si_pid, getpid());
    SYS(sem_post(&handled));
    struct timespec t = {0, 10000000};
    int64_t start = t_now(CLOCK_MONOTONIC);
    int r;
    while ((r = sigtimedwait(&set, &si, &t)) == -1 && errno == EINTR) {}
    EQ(r, -1);
    EQ(errno, EAGAIN);
    CHECK(t_now(CLOCK_MONOTONIC) - start >= 10000000, "early");
    return arg;
}
static void *fd_reader(void *arg) {
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    SYS(fd);
    for (int i = 0; i < 20; i++) {
        struct signalfd_siginfo si;
        struct pollfd p = {fd, POLLIN, 0};
        if (i & 1) SYS(poll(&p, 1, -1));
        EQ(read(fd, &si, sizeof si), sizeof si);
        EQ(si.ssi_signo, SIGUSR1);
        SYS(sem_post(&handled));
    }
    close(fd);
    return arg;
}
static void *mask_child(void *arg) { // inherits the mask of its creator
    sigset_t now;
    OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
    int i = (int)(intptr_t)arg;
    for (int s = 0; s < 8; s++) EQ(sigismember(&now, SIGRTMIN + s), (i >> s) & 1);
    return NULL;
}
static void *mask_parent(void *arg) {
    int i = (int)(intptr_t)arg & 255;
    sigset_t mine;
    sigemptyset(&mine);
    for (int s = 0; s < 8; s++)
        if ((i >> s) & 1) sigaddset(&mine, SIGRTMIN + s);
    OK(pthread_sigmask(SIG_SETMASK, &mine, NULL));
    t_join(t_spawn(mask_child, (void *)(intptr_t)i));
    for (int k = 0; k < 10; k++) {
        sched_yield();
        mask_child((void *)(intptr_t)i);
        t_sleep_us(100);
    }
    return NULL;
}
static void wait_handled(void) {
    while (sem_wait(&handled)) EQ(errno, EINTR);
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t), s;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    struct sigaction sa = {.sa_handler = handler};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    SYS(sem_init(&handled, 0, 0));
    SYS(sem_init(&sem, 0, 0));
    SYS(sem_init(&ready, 0, 0));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(waits, NULL);
    PHASE("one thread does not block it");
    s = t_spawn(unblocks, NULL);
    while (sem_wait(&ready)) EQ(errno, EINTR);
    for (int i = 0; i < 50; i++) {
        SYS(kill(getpid(), SIGUSR1));
        wait_handled();
    }
    EQ(wrong, 0);
    SYS(sem_post(&sem));
    for (int i = 0; i < threads; i++) SYS(sem_post(&sem));
    t_join(s);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(waits, NULL);
    PHASE("sigwait");
    s = t_spawn(sigwaiter, NULL);
    for (int i = 0; i < 20; i++) {
        SYS(kill(getpid(), SIGUSR1));
        wait_handled();
    }
    EQ(got[0], 20);
    union sigval v = {.sival_int = 4711};
    SYS(sigqueue(getpid(), SIGUSR1, v));
    wait_handled();
    t_join(s);
    PHASE("signalfd");
    s = t_spawn(fd_reader, NULL);
    for (int i = 0; i < 20; i++) {
        SYS(kill(getpid(), SIGUSR1));
        wait_handled();
    }
    t_join(s);
    EQ(wrong, 0);
    for (int i = 0; i < threads; i++) SYS(sem_post(&sem));
    for (int i = 0; i < threads; i++) t_join(t[i]);
    PHASE("masks");
    t_run(threads < 16 ? 16 : threads, mask_parent);
    return t_ok("signal_process");
}
