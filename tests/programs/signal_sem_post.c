// sem_post from handlers: a timer interrupts main and threads in sem_wait, sem_post and other
// calls, so the handler runs in the middle of them. Every post must be consumed.
#include "pthread_test.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

static sem_t sem, pingpong[2];
static int posts, takes, rounds;
static volatile int stop;

static void handler(int sig) {
    (void)sig;
    int e = errno;
    __atomic_add_fetch(&posts, 1, __ATOMIC_SEQ_CST);
    if (sem_post(&sem)) FAIL("sem_post: %s", strerror(errno));
    errno = e;
}
static void *taker(void *arg) {
    for (;;) {
        while (sem_wait(&sem)) EQ(errno, EINTR);
        if (stop) return arg;
        __atomic_add_fetch(&takes, 1, __ATOMIC_SEQ_CST);
    }
}
static void *player(void *arg) {
    int side = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++) {
        while (sem_wait(&pingpong[side])) EQ(errno, EINTR);
        SYS(sem_post(&pingpong[!side]));
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads(), v;
    pthread_t *t = calloc(1024, sizeof *t), p[2];
    SYS(sem_init(&sem, 0, 0));
    SYS(sem_init(&pingpong[0], 0, 1));
    SYS(sem_init(&pingpong[1], 0, 0));
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGALRM, &sa, NULL));
    SYS(sigaction(SIGUSR1, &sa, NULL));
    PHASE("posts and interruptions");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(taker, NULL);
    rounds = 3000;
    for (int i = 0; i < 2; i++) p[i] = t_spawn(player, (void *)(intptr_t)i);
    struct itimerval it = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
    SYS(setitimer(ITIMER_REAL, &it, NULL));
    for (int i = 0; i < 400; i++) {
        OK(pthread_kill(p[i & 1], SIGUSR1)); // not joined yet: the handle is valid after its exit
        OK(pthread_kill(t[i % threads], SIGUSR1));
        t_sleep_us(100);
    }
    for (int i = 0; i < 2; i++) t_join(p[i]);
    while (__atomic_load_n(&posts, __ATOMIC_SEQ_CST) < 100) t_sleep_us(500);
    SYS(setitimer(ITIMER_REAL, &off, NULL));
    PHASE("all posts taken");
    // A signal may still be on the way to a thread that has not run since pthread_kill.
    int quiet = 0;
    for (int last = -1; quiet < 5; t_sleep_ms(2)) {
        int now = __atomic_load_n(&posts, __ATOMIC_SEQ_CST);
        quiet = now == last && __atomic_load_n(&takes, __ATOMIC_SEQ_CST) == now ? quiet + 1 : 0;
        last = now;
    }
    EQ(takes, posts);
    SYS(sem_getvalue(&sem, &v));
    EQ(v, 0);
    PHASE("ending");
    stop = 1;
    for (int i = 0; i < threads; i++) SYS(sem_post(&sem));
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_sem_post");
}
