// The runtime gives up the process while it runs: threads wait, signal, spin, sleep, poll and
// handle signals when main installs a filter for its own system calls (one that allows all). No
// thread is lost, and everything works afterwards.
//
//     process_giveup [urgent]
//
// urgent: set a handler for SIGURG, so that the runtime preempts by another signal, which would
// kill the process if it came too late.
#include "pthread_test.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

enum { KINDS = 7 };
static pthread_barrier_t barrier[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long turn;
static atomic_long counted[128]; // rounds of each thread
static atomic_int flag, stop, running;
static sem_t sem[2];
static int wake_fd[2], epoll_fd[2];
static __thread volatile int handled;
static __thread char *alternate;

static void handler(int sig) {
    char here;
    (void)sig;
    CHECK(&here >= alternate && &here < alternate + 65536, "a handler on another stack");
    handled++;
    sched_yield();
}
static int going_on(int pair, int *rounds) { // both threads of a pair stop after the same round
    static atomic_int last[1024];
    ++*rounds;
    if (atomic_load(&stop)) {
        int none = 0;
        atomic_compare_exchange_strong(&last[pair], &none, *rounds + 2);
    }
    int l = atomic_load(&last[pair]);
    return !l || *rounds < l;
}
static void one(int kind, int side) {
    struct epoll_event e;
    uint64_t n = 1;
    switch (kind) {
    case 0:
        pthread_barrier_wait(&barrier[0]);
        pthread_barrier_wait(&barrier[1]);
        break;
    case 1:
        OK(pthread_mutex_lock(&mutex));
        while (turn % 2 != side) OK(pthread_cond_wait(&cond, &mutex));
        turn++;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));
        break;
    case 2:
        while (atomic_load(&flag) % 2 != side) {}
        atomic_fetch_add(&flag, 1);
        break;
    case 3:
        SYS(sem_post(&sem[side]));
        while (sem_wait(&sem[!side])) EQ(errno, EINTR);
        break;
    case 4:
        EQ(write(wake_fd[side], &n, sizeof n), sizeof n);
        for (int got; (got = epoll_wait(epoll_fd[!side], &e, 1, -1)) != 1;)
            CHECK(got == -1 && errno == EINTR, "epoll_wait: %d", got);
        EQ(read(wake_fd[!side], &n, sizeof n), sizeof n);
        break;
    case 5: t_sleep_us(100); break;
    case 6:
        n = (uint64_t)handled;
        OK(pthread_kill(pthread_self(), SIGUSR1));
        EQ(handled, n + 1);
        break;
    }
}
static void *work(void *arg) {
    int me = (int)(intptr_t)arg, kind = me / 2 % KINDS, rounds = 0;
    stack_t s = {.ss_sp = alternate = malloc(65536), .ss_size = 65536}, now;
    if (me / 2 / KINDS) kind = 5 + me % 2; // one pair per kind that has objects of its own
    SYS(sigaltstack(&s, NULL));
    atomic_fetch_add(&running, 1);
    while (going_on(me / 2, &rounds)) {
        one(kind, me % 2);
        OK(pthread_mutex_lock(&mutex)); // a lock that all threads contend for
        atomic_fetch_add(&counted[me], 1);
        OK(pthread_mutex_unlock(&mutex));
    }
    SYS(sigaltstack(NULL, &now));
    EQ(now.ss_sp == alternate && !now.ss_flags, 1);
    s.ss_flags = SS_DISABLE;
    SYS(sigaltstack(&s, NULL));
    free(alternate);
    return NULL;
}
static void filter(void) {
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, code};
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SYS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

int main(int argc, char **argv) {
    t_watchdog();
    int threads = t_threads();
    if (threads < 2 * KINDS) threads = 2 * KINDS;
    if (threads > 128) threads = 128;
    for (int i = 0; i < 2; i++) {
        OK(pthread_barrier_init(&barrier[i], NULL, 2));
        SYS(sem_init(&sem[i], 0, 0));
        SYS(wake_fd[i] = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
        SYS(epoll_fd[i] = epoll_create1(EPOLL_CLOEXEC));
        struct epoll_event e = {.events = EPOLLIN};
        SYS(epoll_ctl(epoll_fd[i], EPOLL_CTL_ADD, wake_fd[i], &e));
    }
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART}, now;
    SYS(sigaction(SIGUSR1, &a, NULL));
    if (argc > 1 && !strcmp(argv[1], "urgent")) SYS(sigaction(SIGURG, &a, NULL));
    pthread_t t[128];
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    while (running < threads) sched_yield();
    uint64_t seed = (uint64_t)t_env("SEED", t_now(CLOCK_MONOTONIC));
    t_sleep_us((int)(t_rand(&seed) % 30000));
    filter();
    SYS(sigaction(SIGUSR1, NULL, &now));
    CHECK(now.sa_handler == handler, "the action is lost");
    t_sleep_ms(50);
    for (int i = 0; i < threads; i++) // each must progress; else the watchdog ends the test
        for (long before = counted[i]; counted[i] == before;) t_sleep_us(100);
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    // a thread of a kind that needs no partner
    pthread_t late = t_spawn(work, (void *)(intptr_t)13);
    t_join(late);
    return t_ok("process_giveup");
}
