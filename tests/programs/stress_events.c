// Event loops in many threads pass tokens to random others, some through instances that several
// threads wait on, some with short timeouts. Meanwhile others compute, sleep on a condition
// variable, fork children with event loops, send signals, and close descriptors that they do not
// own. All tokens must make all their hops.
#include "pthread_test.h"
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { MOST = 256 };
static int threads, tokens;
static int inbox[MOST], instance[MOST];
static pthread_t thread[MOST];
static long hops, wanted;
static int done;
static uint64_t seed;
static int handled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;

static void handler(int sig) {
    (void)sig;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void send_to(int i, uint64_t n) { EQ(write(inbox[i], &n, sizeof n), sizeof n); }

static void finish(void) {
    __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < threads; i++) send_to(i, 1);
    OK(pthread_mutex_lock(&lock));
    OK(pthread_cond_broadcast(&over));
    OK(pthread_mutex_unlock(&lock));
}

static void *loop(void *arg) {
    int me = (int)(intptr_t)arg;
    uint64_t state = seed + (uint64_t)me * 7919;
    struct epoll_event got[8];
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
        int timeout = me % 5 == 3 ? (int)(t_rand(&state) % 5) : -1;
        int n = epoll_wait(instance[me], got, 1 + me % 8, timeout);
        if (n < 0) EQ(errno, EINTR);
        CHECK(n > 0 || timeout >= 0 || errno == EINTR, "epoll_wait = 0 without a timeout");
        for (int i = 0; i < n; i++) {
            int from = (int)got[i].data.u32;
            uint64_t v;
            ssize_t size = read(inbox[from], &v, sizeof v);
            if (size < 0) { // another thread that shares it was faster
                EQ(errno, EAGAIN);
                continue;
            }
            for (; v > 0; v--) {
                if (__atomic_add_fetch(&hops, 1, __ATOMIC_SEQ_CST) == wanted) finish();
                send_to((int)(t_rand(&state) % (uint32_t)threads), 1);
            }
        }
        if (me % 7 == 5 && t_rand(&state) % 64 == 0)
            for (volatile int k = 0; k < 200000; k++) {}
    }
    // the token that `finish` sent may have been taken by the other thread of this instance
    send_to(me, 1);
    if (me % 4 >= 2 && (me ^ 1) < threads) send_to(me ^ 1, 1);
    return NULL;
}

static void *compute(void *arg) {
    (void)arg;
    volatile uint64_t n = 0;
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) n++;
    return NULL;
}

static void *wait_for_end(void *arg) {
    (void)arg;
    OK(pthread_mutex_lock(&lock));
    while (!done) OK(pthread_cond_wait(&over, &lock));
    OK(pthread_mutex_unlock(&lock));
    return NULL;
}

static void *echo(void *arg) {
    int *fd = arg, ep;
    struct epoll_event ev = {.events = EPOLLIN}, got;
    SYS(ep = epoll_create1(EPOLL_CLOEXEC));
    SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
    for (int i = 0; i < 50; i++) {
        int n;
        uint64_t v;
        while ((n = epoll_wait(ep, &got, 1, -1)) < 0) EQ(errno, EINTR);
        EQ(read(fd[0], &v, sizeof v), sizeof v);
        EQ(write(fd[1], &v, sizeof v), sizeof v);
    }
    close(ep);
    return NULL;
}

static void child(void) {
    int fd[6];
    pthread_t t[6];
    int pair[6][2];
    for (int i = 0; i < 6; i++) SYS(fd[i] = eventfd(0, EFD_NONBLOCK));
    for (int i = 0; i < 6; i++) {
        pair[i][0] = fd[i];
        pair[i][1] = fd[(i + 1) % 6];
        t[i] = t_spawn(echo, pair[i]);
    }
    uint64_t one = 1;
    EQ(write(fd[0], &one, 8), 8);
    for (int i = 0; i < 6; i++) t_join(t[i]);
    _exit(0);
}

static void *disturb(void *arg) {
    (void)arg;
    uint64_t state = seed + 1;
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
        uint32_t what = t_rand(&state) % 16;
        if (what == 0) {
            pid_t pid;
            int status;
            SYS(pid = fork());
            if (pid == 0) child();
            while (waitpid(pid, &status, 0) < 0) EQ(errno, EINTR);
            EQ(status, 0);
        } else if (what < 3) { // as programs do that close whatever they may have inherited;
                               // nothing of theirs is up there
            close_range(600, ~0u, what == 1 ? 0 : CLOSE_RANGE_CLOEXEC);
            for (int fd = 600; fd < 1100; fd++) ERR(close(fd), EBADF);
        } else {
            pthread_kill(thread[t_rand(&state) % (uint32_t)threads], SIGUSR1);
        }
        t_sleep_us((int)(t_rand(&state) % 2000));
    }
    return NULL;
}

int main(int argc, char **argv) {
    t_watchdog();
    seed = t_seed();
    threads = t_threads() > MOST ? MOST : t_threads();
    tokens = argc > 1 ? atoi(argv[1]) : threads / 2;
    if (tokens < 1) tokens = 1;
    wanted = t_env("HOPS", 60000);
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &a, NULL));
    for (int i = 0; i < threads; i++) {
        struct epoll_event ev = {.events = EPOLLIN | (i % 3 == 0 ? EPOLLET : 0),
                                 .data.u32 = (uint32_t)i};
        SYS(inbox[i] = eventfd(0, EFD_NONBLOCK));
        // Every fourth thread waits on its neighbour's instance, together with it.
        if (i % 4 == 3)
            instance[i] = instance[i - 1];
        else
            SYS(instance[i] = epoll_create1(EPOLL_CLOEXEC));
        SYS(epoll_ctl(instance[i], EPOLL_CTL_ADD, inbox[i], &ev));
    }
    pthread_t others[3];
    for (int i = 0; i < threads; i++) thread[i] = t_spawn(loop, (void *)(intptr_t)i);
    others[0] = t_spawn(compute, NULL);
    others[1] = t_spawn(wait_for_end, NULL);
    others[2] = t_spawn(disturb, NULL);
    for (int i = 0; i < tokens; i++) send_to(i % threads, 1);
    t_join(others[2]); // first: it sends signals, which needs valid handles
    for (int i = 0; i < threads; i++) t_join(thread[i]);
    for (int i = 0; i < 2; i++) t_join(others[i]);
    CHECK(hops >= wanted);
    return t_ok("stress_events");
}
