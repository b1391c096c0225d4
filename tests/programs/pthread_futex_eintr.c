// A handler ends a futex wait with EINTR. Under SA_RESTART an untimed wait continues, but a timed
// one still gets EINTR. A stop without a handler restarts a timed wait (restart_syscall, number
// 219), which then ends on time.
#include "pthread_futex.h"
#include <signal.h>

static uint32_t word;
static int caught, entered, threads, kinds;
static long results[1024];

static void handler(int sig) {
    (void)sig;
    __atomic_add_fetch(&caught, 1, __ATOMIC_SEQ_CST);
}
static void *waiter(void *arg) {
    int i = (int)(intptr_t)arg;
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
    struct timespec until = t_after_ms(CLOCK_MONOTONIC, 100000);
    int kind = kinds == 4 ? 2 : i % kinds;
    if (kind == 0)
        results[i] = futex(i, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    else if (kind == 1)
        results[i] = futex(i, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
    else
        results[i] =
            futex(i, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY);
    return NULL;
}
static void *timed(void *arg) {
    struct timespec rel = {0, 60000000};
    int64_t start = t_now(CLOCK_MONOTONIC);
    EQ(futex((int)(intptr_t)arg, &word, FUTEX_WAIT_PRIVATE, 0, &rel, NULL, 0), -ETIMEDOUT);
    CHECK(t_now(CLOCK_MONOTONIC) - start >= 60000000, "early");
    return NULL;
}
static void interrupt_all(pthread_t *t) {
    for (int i = 0; i < threads; i++) {
        results[i] = 1;
        t[i] = t_spawn(waiter, (void *)(intptr_t)i);
    }
    while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) < threads) t_sleep_us(100);
    for (int i = 0; i < threads; i++) {
        // Repeat, since the first signal may come before the wait.
        while (__atomic_load_n(&results[i], __ATOMIC_SEQ_CST) == 1) {
            OK(pthread_kill(t[i], SIGUSR1));
            t_sleep_us(200);
        }
        t_join(t[i]);
        EQ(results[i], -EINTR);
    }
    CHECK(caught >= threads, "only %d handlers ran", caught);
    caught = entered = 0;
}
static void install(int flags) {
    struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};
    SYS(sigaction(SIGUSR1, &sa, NULL));
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    PHASE("EINTR");
    install(0);
    kinds = 3;
    interrupt_all(t);
    PHASE("SA_RESTART, untimed");
    install(SA_RESTART);
    kinds = 2;
    for (int i = 0; i < threads; i++) t[i] = t_spawn(waiter, (void *)(intptr_t)i);
    while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) < threads) t_sleep_us(100);
    t_sleep_ms(5);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < threads; i++) {
            int before = __atomic_load_n(&caught, __ATOMIC_SEQ_CST);
            OK(pthread_kill(t[i], SIGUSR1));
            while (__atomic_load_n(&caught, __ATOMIC_SEQ_CST) == before) sched_yield();
        }
    t_sleep_ms(2);
    int left = threads;
    while (left) {
        // private and shared waiters are in different queues
        long r = futex(left, &word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        r += futex(left, &word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        left -= (int)r;
        CHECK(left >= 0, "woke too many");
        if (!r) t_sleep_us(100);
    }
    for (int i = 0; i < threads; i++) {
        t_join(t[i]);
        EQ(results[i], 0);
    }
    PHASE("SA_RESTART, timed");
    kinds = 4; // timed waits only
    caught = entered = 0;
    interrupt_all(t);
    PHASE("stopped and continued");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(timed, (void *)(intptr_t)i);
    pid_t parent = getpid(), child = fork();
    SYS(child);
    if (!child) {
        for (int i = 0; i < 2; i++) {
            t_sleep_ms(15);
            kill(parent, SIGSTOP);
            t_sleep_ms(5);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    for (int i = 0; i < threads; i++) t_join(t[i]);
    int status;
    SYS(waitpid(child, &status, 0));
    EQ(status, 0);
    return t_ok("pthread_futex_eintr");
}
