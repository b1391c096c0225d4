// Threads that block in random cancellable calls. A manager cancels them, wakes them or lets them
// end at random times, joins them and replaces them. Afterwards the mutex is free, permits are
// conserved, and every handler ran once.
#include "pthread_test.h"
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int permits, taken, cond_posts, sem_posts, sem_taken, handlers, cancelled, finished,
    pipes[2];
static uint64_t seed;
static pthread_key_t key;
static int keys_gone;

static void on_signal(int sig) { (void)sig; }
static void key_gone(void *v) {
    (void)v;
    __atomic_add_fetch(&keys_gone, 1, __ATOMIC_SEQ_CST);
}
static void unlock(void *arg) {
    __atomic_add_fetch(&handlers, 1, __ATOMIC_SEQ_CST);
    OK(pthread_mutex_unlock(arg));
}
static void count(void *arg) {
    (void)arg;
    __atomic_add_fetch(&handlers, 1, __ATOMIC_SEQ_CST);
}
static void delay(uint64_t *s) {
    switch (t_rand(s) % 6) {
    case 0: t_sleep_us((int)(t_rand(s) % 100)); break;
    case 1: sched_yield(); break;
    case 2:
        for (unsigned n = t_rand(s) % 3000; n; n--) __builtin_ia32_pause();
    }
}
static void *work(void *arg) {
    uint64_t s = seed * 31 + (uint64_t)(intptr_t)arg;
    char c;
    OK(pthread_setspecific(key, &key));
    if (t_rand(&s) % 8 == 0) OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    if (t_rand(&s) % 4 == 0)
        for (unsigned n = t_rand(&s) % 5000; n; n--) __builtin_ia32_pause();
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL));
    switch ((intptr_t)arg % 4) {
    case 0:
    case 1:
        OK(pthread_mutex_lock(&mutex));
        pthread_cleanup_push(unlock, &mutex);
        while (!permits) {
            if ((intptr_t)arg & 1)
                OK(pthread_cond_wait(&cond, &mutex));
            else {
                struct timespec t = t_ts(t_now(CLOCK_REALTIME) + t_rand(&s) % 2000000);
                int e = pthread_cond_timedwait(&cond, &mutex, &t);
                CHECK(!e || e == ETIMEDOUT, "timedwait: %d", e);
            }
        }
        permits--;
        taken++;
        pthread_cleanup_pop(1);
        break;
    case 2:
        pthread_cleanup_push(count, NULL);
        while (sem_wait(&sem)) EQ(errno, EINTR);
        __atomic_add_fetch(&sem_taken, 1, __ATOMIC_SEQ_CST);
        pthread_cleanup_pop(1);
        break;
    case 3:
        pthread_cleanup_push(count, NULL);
        while (read(pipes[0], &c, 1) != 1) EQ(errno, EINTR);
        pthread_cleanup_pop(1);
        break;
    }
    return (void *)1L;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    if (threads > 256) threads = 256;
    seed = t_seed();
    int rounds = (int)t_env("ROUNDS", 3000);
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    SYS(sem_init(&sem, 0, 0));
    SYS(pipe(pipes));
    OK(pthread_key_create(&key, key_gone));
    pthread_t *t = calloc(1024, sizeof *t);
    int *kind = calloc(1024, sizeof *kind);
    uint64_t s = seed;
    int next = 0;
    for (int i = 0; i < threads; i++) {
        kind[i] = next % 4;
        t[i] = t_spawn(work, (void *)(intptr_t)next++);
    }
    PHASE("manager");
    for (int r = 0; r < rounds; r++) {
        int i = (int)(t_rand(&s) % (unsigned)threads);
        delay(&s);
        if (t_rand(&s) % 4 == 0) OK(pthread_kill(t[i], SIGUSR1));
        int cancel = t_rand(&s) % 3 != 0;
        if (cancel) {
            OK(pthread_cancel(t[i]));
            if (t_rand(&s) % 4 == 0) { // a wake-up at the same time
                OK(pthread_mutex_lock(&mutex));
                OK(pthread_cond_signal(&cond));
                OK(pthread_mutex_unlock(&mutex));
            }
        } else {
            // Enough permits for all threads that might take one before t[i]; the rest is counted
            // at the end.
            for (int k = 0; k < threads; k++) {
                if (kind[i] < 2) {
                    OK(pthread_mutex_lock(&mutex));
                    permits++;
                    cond_posts++;
                    OK(pthread_cond_signal(&cond));
                    OK(pthread_mutex_unlock(&mutex));
                } else if (kind[i] == 2) {
                    SYS(sem_post(&sem));
                    sem_posts++;
                } else
                    EQ(write(pipes[1], "x", 1), 1);
                delay(&s);
                if (pthread_tryjoin_np(t[i], NULL) == 0) goto joined;
            }
        }
        void *v = t_join(t[i]);
        if (v == PTHREAD_CANCELED)
            cancelled++;
        else {
            EQ((long)v, 1);
            finished++;
        }
        CHECK(cancel || v != PTHREAD_CANCELED, "cancelled by nobody");
        goto replace;
    joined:
        finished++;
    replace:
        kind[i] = next % 4;
        t[i] = t_spawn(work, (void *)(intptr_t)next++);
    }
    PHASE("ending");
    for (int i = 0; i < threads; i++) OK(pthread_cancel(t[i]));
    for (int i = 0; i < threads; i++) t_join(t[i]) == PTHREAD_CANCELED ? cancelled++ : finished++;
    EQ(pthread_mutex_trylock(&mutex), 0);
    EQ(cancelled + finished, next);
    EQ(permits, cond_posts - taken);
    int v;
    SYS(sem_getvalue(&sem, &v));
    EQ(v, sem_posts - sem_taken);
    // A thread cancelled before it blocks has no handler, and maybe no key.
    CHECK(handlers <= next && handlers >= finished, "%d handlers, %d threads", handlers, next);
    CHECK(keys_gone == next, "%d destructors of %d threads", keys_gone, next);
    return t_ok("stress_cancel");
}
