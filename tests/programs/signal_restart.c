// read on a pipe and sem_wait return EINTR without SA_RESTART and continue with it. nanosleep
// returns the remaining time. pthread_mutex_lock, cond_wait and join never return EINTR.
#include "pthread_test.h"
#include <semaphore.h>
#include <signal.h>

static int pipes[2], flags;
static sem_t sem, in;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t sleeper_thread;
static int go, done[8];

static void handler(int sig) { (void)sig; }
static void *reader(void *arg) {
    char c = 0;
    SYS(sem_post(&in));
    ssize_t n = read(pipes[0], &c, 1);
    if (flags & SA_RESTART) {
        EQ(n, 1);
        EQ(c, 'x');
    } else {
        EQ(n, -1);
        EQ(errno, EINTR);
    }
    __atomic_store_n(&done[0], 1, __ATOMIC_SEQ_CST);
    return arg;
}
static void *sem_waiter(void *arg) {
    SYS(sem_post(&in));
    int r = sem_wait(&sem);
    if (flags & SA_RESTART)
        EQ(r, 0);
    else {
        EQ(r, -1);
        EQ(errno, EINTR);
    }
    __atomic_store_n(&done[1], 1, __ATOMIC_SEQ_CST);
    return arg;
}
static void *sleeper(void *arg) { // never restarted
    struct timespec t = {100, 0}, rest = {0, 0};
    SYS(sem_post(&in));
    ERR(nanosleep(&t, &rest), EINTR);
    CHECK(rest.tv_sec >= 1 && rest.tv_sec < 100, "rest %ld s", (long)rest.tv_sec);
    __atomic_store_n(&done[2], 1, __ATOMIC_SEQ_CST);
    return arg;
}
static void *locker(void *arg) {
    SYS(sem_post(&in));
    OK(pthread_mutex_lock(&mutex));
    while (!go) OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}
static void *joiner(void *arg) {
    SYS(sem_post(&in));
    t_join(sleeper_thread);
    return arg;
}

int main(void) {
    t_watchdog();
    SYS(pipe(pipes));
    SYS(sem_init(&sem, 0, 0));
    SYS(sem_init(&in, 0, 0));
    for (int restart = 0; restart < 2; restart++) {
        flags = restart ? SA_RESTART : 0;
        struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};
        SYS(sigaction(SIGUSR1, &sa, NULL));
        memset(done, 0, sizeof done);
        go = 0;
        PHASE("start");
        OK(pthread_mutex_lock(&mutex));
        sleeper_thread = t_spawn(locker, NULL);
        pthread_t t[6] = {t_spawn(reader, NULL), t_spawn(sem_waiter, NULL), t_spawn(sleeper, NULL),
                          t_spawn(locker, NULL), t_spawn(joiner, NULL)};
        for (int i = 0; i < 6; i++)
            while (sem_wait(&in)) EQ(errno, EINTR);
        PHASE("interrupt");
        for (int round = 0; round < 10; round++) {
            t_sleep_ms(2);
            if (round == 5) OK(pthread_mutex_unlock(&mutex));
            for (int i = 0; i < 5; i++) OK(pthread_kill(t[i], SIGUSR1));
        }
        // A thread may be slow to reach its call: signal until those that must be interrupted are.
        for (int i = restart ? 2 : 0; i < 3; i++)
            while (!__atomic_load_n(&done[i], __ATOMIC_SEQ_CST)) {
                OK(pthread_kill(t[i], SIGUSR1));
                t_sleep_ms(1);
            }
        PHASE("finish");
        if (restart) {
            EQ(done[0] + done[1], 0);
            EQ(write(pipes[1], "x", 1), 1);
            SYS(sem_post(&sem));
        }
        OK(pthread_mutex_lock(&mutex));
        go = 1;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
        for (int i = 0; i < 5; i++) t_join(t[i]);
    }
    return t_ok("signal_restart");
}
