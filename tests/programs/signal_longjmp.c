// siglongjmp out of a handler that interrupted a futex wait (sem_wait, a raw futex, usleep),
// repeatedly, in main and in threads. The mask is restored and the thread works as before. Plain
// setjmp/longjmp between switches, too.
#include "pthread_futex.h"
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>

static sem_t sem, never;
static uint32_t word;
static __thread sigjmp_buf env;
static __thread volatile sig_atomic_t armed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int rounds, counter;
static struct target {
    pthread_t thread;
    volatile int round, left;
} targets[1024];

static void handler(int sig) {
    (void)sig;
    if (armed) {
        armed = 0;
        siglongjmp(env, 1);
    }
}
static void jumps(struct target *me, int who) {
    for (volatile int i = 0; i < rounds; i++) {
        if (sigsetjmp(env, 1) == 0) {
            armed = 1;
            me->round = i + 1;
            for (;;) {
                if ((who + i) % 3 == 0)
                    sem_wait(&never);
                else if ((who + i) % 3 == 1)
                    futex(i, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
                else
                    usleep(1000);
            }
        }
        sigset_t now;
        OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
        EQ(sigismember(&now, SIGUSR1), 0);
        // Blocking must still work.
        OK(pthread_mutex_lock(&mutex));
        counter++;
        OK(pthread_mutex_unlock(&mutex));
        jmp_buf plain;
        volatile int n = 0;
        if (setjmp(plain) < 3) {
            sched_yield();
            longjmp(plain, ++n);
        }
        EQ(n, 3);
    }
    me->left = 1;
}
static void *thread(void *arg) {
    int i = (int)(intptr_t)arg;
    jumps(&targets[i], i);
    return NULL;
}
static void *pest(void *arg) { // signals every thread until all have done their rounds
    int n = (int)(intptr_t)arg;
    for (int left = n; left;) {
        left = n;
        for (int i = 0; i < n; i++) {
            if (targets[i].left)
                left--;
            else if (targets[i].round)
                pthread_kill(targets[i].thread, SIGUSR1);
        }
        t_sleep_us(200);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(600, threads) < 10 ? 10 : t_share(600, threads);
    SYS(sem_init(&sem, 0, 0));
    SYS(sem_init(&never, 0, 0));
    struct sigaction sa = {.sa_handler = handler};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    PHASE("threads and main jump");
    targets[0].thread = pthread_self();
    for (int i = 1; i < threads; i++) targets[i].thread = t_spawn(thread, (void *)(intptr_t)i);
    pthread_t p = t_spawn(pest, (void *)(intptr_t)threads);
    jumps(&targets[0], 0);
    // The pest ends before the first join: after a join the handle is invalid, and pthread_kill
    // would read a stack that may be unmapped.
    t_join(p);
    for (int i = 1; i < threads; i++) t_join(targets[i].thread);
    EQ(counter, threads * rounds);
    return t_ok("signal_longjmp");
}
