// timer_create with SIGEV_THREAD, SIGEV_THREAD_ID and SIGEV_SIGNAL, setitimer, timerfd and SIGCHLD,
// while THREADS threads keep every CPU busy with barriers.
#include "pthread_test.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static sem_t notified, to_thread, real, child_gone;
static pthread_barrier_t barrier;
static volatile int stop, decided;
static pid_t target_tid;
static pthread_t main_thread;

static void on_thread(union sigval v) {
    EQ(v.sival_int, 99);
    CHECK(!pthread_equal(pthread_self(), main_thread), "SIGEV_THREAD in main");
    SYS(sem_post(&notified));
}
static void on_rt(int sig, siginfo_t *si, void *c) {
    (void)sig;
    (void)c;
    int e = errno;
    if (si->si_value.sival_int == 5) {
        EQ(syscall(SYS_gettid), target_tid);
        sem_post(&to_thread);
    }
    errno = e;
}
static void on_alarm(int sig) {
    (void)sig;
    sem_post(&real);
}
static void on_child(int sig) {
    (void)sig;
    sem_post(&child_gone);
}
static void take(sem_t *s, int n) {
    for (int i = 0; i < n; i++)
        while (sem_wait(s)) EQ(errno, EINTR);
}
static void *busy(void *arg) {
    do {
        // One thread decides for all between the two barriers; otherwise some would continue alone.
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) decided = stop;
        pthread_barrier_wait(&barrier);
    } while (!decided);
    return arg;
}
static void *with_thread_id(void *arg) {
    target_tid = (pid_t)syscall(SYS_gettid);
    struct sigevent ev = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 5};
    ev.sigev_notify_thread_id = target_tid;
    timer_t t;
    SYS(timer_create(CLOCK_MONOTONIC, &ev, &t));
    struct itimerspec it = {{0, 2000000}, {0, 2000000}};
    SYS(timer_settime(t, 0, &it, NULL));
    take(&to_thread, 5);
    SYS(timer_delete(t));
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    main_thread = pthread_self();
    sem_t *all[] = {&notified, &to_thread, &real, &child_gone};
    for (int i = 0; i < 4; i++) SYS(sem_init(all[i], 0, 0));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    struct sigaction sa = {.sa_sigaction = on_rt, .sa_flags = SA_SIGINFO | SA_RESTART};
    SYS(sigaction(SIGRTMIN, &sa, NULL));
    sa = (struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGALRM, &sa, NULL));
    sa.sa_handler = on_child;
    SYS(sigaction(SIGCHLD, &sa, NULL));
    pthread_t *t = calloc(1024, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(busy, NULL);
    PHASE("SIGEV_THREAD");
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD,
                          .sigev_value.sival_int = 99,
                          .sigev_notify_function = on_thread};
    timer_t timer;
    SYS(timer_create(CLOCK_REALTIME, &ev, &timer));
    struct itimerspec it = {{0, 3000000}, {0, 3000000}};
    SYS(timer_settime(timer, 0, &it, NULL));
    take(&notified, 4);
    SYS(timer_delete(timer));
    PHASE("SIGEV_THREAD_ID");
    t_join(t_spawn(with_thread_id, NULL));
    PHASE("setitimer");
    struct itimerval iv = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    SYS(setitimer(ITIMER_REAL, &iv, NULL));
    take(&real, 5);
    SYS(setitimer(ITIMER_REAL, &off, NULL));
    PHASE("timerfd");
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    SYS(fd);
    SYS(timerfd_settime(fd, 0, &it, NULL));
    uint64_t n = 0, sum = 0;
    for (int i = 0; i < 3; i++, sum += n) EQ(read(fd, &n, sizeof n), 8);
    CHECK(sum >= 3, "timerfd");
    PHASE("SIGCHLD");
    pid_t pid = fork();
    SYS(pid);
    if (!pid) _exit(7);
    take(&child_gone, 1);
    int status;
    SYS(waitpid(pid, &status, 0));
    EQ(WEXITSTATUS(status), 7);
    PHASE("ending");
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_timer");
}
