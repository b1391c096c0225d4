// pthread_kill reaches exactly the named thread, with the right pthread_self, gettid, thread-local
// data and stack. The thread computes, sleeps, or waits for a condition variable, a semaphore, a
// mutex or a futex.
#include "pthread_futex.h"
#include <gnu/libc-version.h>
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t started, sem;
static uint32_t word;
static volatile int stop;
static int threads, rounds;
static struct info {
    pthread_t self;
    pid_t tid;
    char *stack;
    int handled;
    long err;
} info[1024];
static __thread int me = -1;

static void handler(int sig) {
    char here;
    int e = errno;
    (void)sig;
    CHECK(me >= 0, "handler in a thread that was not signalled");
    CHECK(pthread_equal(pthread_self(), info[me].self),
          "pthread_self differs in handler of thread %d", me);
    EQ(syscall(SYS_gettid), info[me].tid);
    CHECK(labs(&here - info[me].stack) < 256 * 1024, "handler on a foreign stack in thread %d", me);
    __atomic_add_fetch(&info[me].handled, 1, __ATOMIC_SEQ_CST);
    errno = e;
}
static void *work(void *arg) {
    char here;
    me = (int)(intptr_t)arg;
    info[me].self = pthread_self();
    info[me].tid = (pid_t)syscall(SYS_gettid);
    info[me].stack = &here;
    errno = 1000 + me;
    SYS(sem_post(&started));
    volatile unsigned x = 0;
    switch (me % 6) {
    case 0:
        while (!stop)
            for (int i = 0; i < 1000; i++) x = x * 3 + 1;
        break;
    case 1:
        OK(pthread_mutex_lock(&mutex));
        while (!stop) OK(pthread_cond_wait(&cond, &mutex));
        OK(pthread_mutex_unlock(&mutex));
        break;
    case 2:
        while (!stop)
            if (sem_wait(&sem)) EQ(errno, EINTR);
        errno = 1000 + me;
        break;
    case 3:
        OK(pthread_mutex_lock(&held));
        OK(pthread_mutex_unlock(&held));
        break;
    case 4:
        while (!stop) futex(me, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        errno = 1000 + me;
        break;
    case 5:
        while (!stop) usleep(500);
        errno = 1000 + me;
        break;
    }
    EQ(errno, 1000 + me);
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads() < 6 ? 6 : t_threads();
    if (threads > 96) threads = 96; // a sixth of them computes all the time
    rounds = t_share(600, threads);
    struct sigaction sa = {.sa_handler = handler};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    SYS(sem_init(&started, 0, 0));
    SYS(sem_init(&sem, 0, 0));
    OK(pthread_mutex_lock(&held));
    pthread_t *t = calloc(1024, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        while (sem_wait(&started)) EQ(errno, EINTR);
    PHASE("signalling");
    for (int r = 1; r <= rounds; r++) {
        for (int i = 0; i < threads; i++) OK(pthread_kill(t[i], SIGUSR1));
        for (int i = 0; i < threads; i++)
            while (__atomic_load_n(&info[i].handled, __ATOMIC_SEQ_CST) < r) t_sleep_us(100);
        for (int i = 0; i < threads; i++) EQ(info[i].handled, r);
    }
    PHASE("ending");
    OK(pthread_mutex_lock(&mutex));
    stop = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_unlock(&held));
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    futex(0, &word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    for (int i = 0; i < threads; i++) SYS(sem_post(&sem));
    // Not joined yet. Before 2.34 glibc returns ESRCH for a thread that has exited.
    int since_2_34 = strcmp(gnu_get_libc_version(), "2.34") >= 0;
    for (int i = 0; i < threads; i++) {
        int e = pthread_kill(t[i], 0);
        if (e != ESRCH || since_2_34) EQ(e, 0);
    }
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_kill");
}
