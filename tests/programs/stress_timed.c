// Timed waits, in threads most of which always have something to do. Some waits end by timeout,
// some by a wake at about that time, some by a signal, some long before. Meanwhile children are
// forked that do the same, and credentials are set. No wait may end early, no token may be lost,
// and no thread may wait forever.
#include "pthread_test.h"
#include <linux/futex.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>

enum { MOST = 256, LONG_S = 1000 };
static int threads, rounds;
static uint64_t seed;
static sem_t inbox[MOST];
static pthread_t thread[MOST];
static long sent, taken, ended_by_time;
static int handled;
static pthread_barrier_t all;

static void handler(int sig) {
    (void)sig;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void compute_us(int us) {
    for (int64_t end = t_now(CLOCK_MONOTONIC) + us * 1000; t_now(CLOCK_MONOTONIC) < end;) {}
}

// Take a token of `me`. Returns whether there was one in time.
static int take(int me, int us) {
    clockid_t clock = me % 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    // sometimes just a check: a time in the past
    struct timespec until = us % 7 != 3 ? t_ts(t_now(clock) + (int64_t)us * 1000) : t_ts(0);
    int r;
    while ((r = sem_clockwait(&inbox[me], clock, &until)) && errno == EINTR) {}
    if (!r) {
        __atomic_fetch_add(&taken, 1, __ATOMIC_SEQ_CST);
        return 1;
    }
    EQ(errno, ETIMEDOUT);
    int64_t early = (int64_t)until.tv_sec * 1000000000 + until.tv_nsec - t_now(clock);
    CHECK(early <= 0, "over %lld ns early", (long long)early);
    __atomic_fetch_add(&ended_by_time, 1, __ATOMIC_RELAXED);
    return 0;
}

static void send(int to) {
    __atomic_fetch_add(&sent, 1, __ATOMIC_SEQ_CST);
    OK(sem_post(&inbox[to]));
}

// Wait with a relative timeout, which a signal ends.
static void wait_raw(int us) {
    static int word;
    struct timespec time = t_ts((int64_t)us * 1000);
    int64_t begun = t_now(CLOCK_MONOTONIC);
    long r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
    if (r == 0) return; // spurious wake-up
    CHECK(r == -1 && (errno == ETIMEDOUT || errno == EINTR), "%ld, errno %d", r, errno);
    if (errno == ETIMEDOUT) CHECK(t_now(CLOCK_MONOTONIC) - begun >= us * 1000LL);
}

static void wait_events(int me, int ms) {
    static int instance[MOST];
    struct epoll_event e;
    if (!instance[me]) SYS(instance[me] = epoll_create1(EPOLL_CLOEXEC));
    int64_t begun = t_now(CLOCK_MONOTONIC);
    int n = epoll_wait(instance[me], &e, 1, ms);
    CHECK(n == 0 || (n < 0 && errno == EINTR), "epoll_wait = %d, errno %d", n, errno);
    if (n == 0) CHECK(t_now(CLOCK_MONOTONIC) - begun >= ms * 1000000LL);
}

static void *child_thread(void *arg) {
    for (int i = 0; i < 5; i++) {
        struct timespec until = t_after_ms(CLOCK_MONOTONIC, 2 + i);
        sem_t nobody;
        OK(sem_init(&nobody, 0, 0));
        while (sem_clockwait(&nobody, CLOCK_MONOTONIC, &until) && errno == EINTR) {}
        compute_us(200);
    }
    return arg;
}

static void fork_one(void) {
    enum { OF_CHILD = 2 };
    pid_t pid = fork();
    SYS(pid);
    if (!pid) {
        pthread_t t[OF_CHILD];
        for (int i = 0; i < OF_CHILD; i++) t[i] = t_spawn(child_thread, NULL);
        for (int i = 0; i < OF_CHILD; i++) t_join(t[i]);
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0) EQ(errno, EINTR);
    EQ(status, 0);
}

// Set the credentials to their current values: the monitor is restarted all the same.
static void set_credentials(void) { SYS(setresuid((uid_t)-1, geteuid(), (uid_t)-1)); }

static void *work(void *arg) {
    int me = (int)(intptr_t)arg, next = (me + 1) % threads;
    uint64_t state = seed + (uint64_t)me * 7919;
    for (int i = 0; i < rounds; i++) {
        int us = 500 + (int)(t_rand(&state) % 6000);
        switch (t_rand(&state) % 10) {
        case 0:
        case 1: take(me, us); break;
        case 2: // at about the time at which the next thread's wait ends
            compute_us(us / 4);
            send(next);
            break;
        case 3: wait_raw(us); break;
        case 4: wait_events(me, 1 + us / 1000); break;
        case 5: OK(pthread_kill(thread[next], SIGUSR1)); break;
        case 6: // a wait that ends long before its timeout, since its partner always answers
            send(me);
            CHECK(take(me, LONG_S * 1000000));
            break;
        case 7:
            if (me % 8 == 3 && i % 16 == 0) fork_one();
            if (me % 8 == 5 && i % 16 == 0) set_credentials();
            break;
        default: compute_us(us / 8);
        }
    }
    int r = pthread_barrier_wait(&all); // handles are used until here
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    return NULL;
}

int main(int argc, char **argv) {
    threads = t_threads() < MOST ? t_threads() : MOST;
    rounds = argc > 1 ? atoi(argv[1]) : t_share(6400, threads);
    seed = t_seed();
    t_watchdog();
    OK(pthread_barrier_init(&all, NULL, (unsigned)threads));
    struct sigaction action = {.sa_handler = handler};
    SYS(sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < threads; i++) OK(sem_init(&inbox[i], 0, 0));
    thread[0] = pthread_self();
    for (int i = 1; i < threads; i++) thread[i] = thread[0];
    for (int i = 0; i < threads; i++) thread[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) t_join(thread[i]);
    long unread = 0;
    for (int i = 0; i < threads; i++) {
        int v;
        OK(sem_getvalue(&inbox[i], &v));
        unread += v;
    }
    EQ(taken + unread, sent);
    CHECK(ended_by_time > 0);
    puts("ok stress_timed");
    return 0;
}
