// Cancellation of blocked threads: in sem_wait, read from a pipe, poll, pthread_join, nanosleep,
// sigwait, accept and waitpid; not in mutex_lock or barrier_wait, which are no cancellation points.
#include "pthread_test.h"
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>

static sem_t never, gate, in;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int pipes[2], pair[2], handled, passed;
static pthread_t forever_thread;
static pid_t child;

static void handler(void *arg) {
    (void)arg;
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}
static void b_sem(void) {
    while (sem_wait(&never)) EQ(errno, EINTR);
}
static void b_semtimed(void) {
    struct timespec t = t_after_ms(CLOCK_REALTIME, 100000);
    while (sem_timedwait(&never, &t)) EQ(errno, EINTR);
}
static void b_read(void) {
    char c;
    SYS(read(pipes[0], &c, 1));
}
static void b_poll(void) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    SYS(poll(&p, 1, -1));
}
static void b_recv(void) {
    char c;
    SYS(recv(pair[0], &c, 1, 0));
}
static void b_join(void) { pthread_join(forever_thread, NULL); }
static void b_sleep(void) {
    for (;;) t_sleep_ms(100000);
}
static void b_pause(void) { pause(); }
static void b_waitpid(void) {
    int s;
    waitpid(child, &s, 0);
}
static void b_sigwait(void) {
    sigset_t set;
    int sig;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &sig);
}
static void (*const kinds[])(void) = {b_sem,  b_semtimed, b_read,  b_poll,    b_recv,
                                      b_join, b_sleep,    b_pause, b_waitpid, b_sigwait};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void *block(void *arg) {
    pthread_cleanup_push(handler, NULL);
    SYS(sem_post(&in));
    kinds[(intptr_t)arg % KINDS]();
    FAIL("kind %d came back", (int)((intptr_t)arg % KINDS));
    pthread_cleanup_pop(0);
    return NULL;
}
static void *forever(void *arg) {
    while (sem_wait(&gate)) EQ(errno, EINTR);
    return arg;
}
static void *not_a_point(void *arg) {
    SYS(sem_post(&in));
    if (arg) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
    } else
        pthread_barrier_wait(&barrier);
    __atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST);
    pthread_testcancel();
    return NULL;
}
static void wait_in(int n) {
    for (int i = 0; i < n; i++)
        while (sem_wait(&in)) EQ(errno, EINTR);
}

int main(void) {
    t_watchdog();
    int threads = t_threads() < 2 * KINDS ? 2 * KINDS : t_threads();
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    SYS(sem_init(&never, 0, 0));
    SYS(sem_init(&gate, 0, 0));
    SYS(sem_init(&in, 0, 0));
    SYS(pipe(pipes));
    SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    SYS(child = fork());
    if (!child) {
        char c;
        close(pipes[1]); // ends when the parent does, in any case
        if (read(pipes[0], &c, 1) < 0) _exit(1);
        _exit(0);
    }
    for (int round = 0; round < 2; round++) {
        PHASE("blocked");
        handled = 0;
        forever_thread = t_spawn(forever, NULL);
        for (int i = 0; i < threads; i++) t[i] = t_spawn(block, (void *)(intptr_t)i);
        wait_in(threads);
        if (round) t_sleep_ms(20); // surely blocked; in the first round maybe not yet
        for (int i = 0; i < threads; i++) OK(pthread_cancel(t[i]));
        for (int i = 0; i < threads; i++)
            CHECK(t_join(t[i]) == PTHREAD_CANCELED, "kind %d", i % KINDS);
        EQ(handled, threads);
        SYS(sem_post(&gate)); // a thread stays joinable after a cancelled join
        t_join(forever_thread);
    }
    PHASE("no cancellation point");
    OK(pthread_barrier_init(&barrier, NULL, 3));
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < 4; i++) t[i] = t_spawn(not_a_point, (void *)(intptr_t)(i & 1));
    wait_in(4);
    t_sleep_ms(5);
    for (int i = 0; i < 4; i++) OK(pthread_cancel(t[i]));
    t_sleep_ms(5);
    EQ(passed, 0);
    pthread_barrier_wait(&barrier);
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 4; i++) CHECK(t_join(t[i]) == PTHREAD_CANCELED, "thread %d", i);
    EQ(passed, 4);
    close(pipes[1]);
    return t_ok("pthread_cancel_block");
}
