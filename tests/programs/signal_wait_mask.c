// Calls that wait with a mask of their own (sigsuspend, ppoll, pselect, epoll_pwait, io_pgetevents,
// io_uring_enter; the last two only where the kernel has them and permits their use). The handler
// that ends one runs with that mask, its action's mask and its signal blocked. The caller's mask is
// restored afterwards, and signals in both masks stay pending. The signals come before the call or
// from another thread.
#include "pthread_test.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

enum { CALLS = 7, ROUNDS = 42, THREADS = 512 };

static __thread volatile sig_atomic_t first, second;
static __thread sigset_t seen;
static __thread int epoll;
static aio_context_t aio; // 0: there is none
static int ring;          // -1: there is none
static pthread_t thread[THREADS];
static _Atomic int asks[THREADS]; // 1: signal this thread; -1: it has ended

static void on_first(int sig) {
    pthread_sigmask(SIG_SETMASK, NULL, &seen);
    first++;
    (void)sig;
}

static void on_second(int sig) {
    second++;
    (void)sig;
}

static void send(pthread_t to) {
    pthread_kill(to, SIGUSR2);
    pthread_kill(to, SIGUSR1);
}

static int wait_with(int call, const sigset_t *mask) {
    struct epoll_event event;
    switch (call) {
    case 0: return sigsuspend(mask);
    case 1: return ppoll(NULL, 0, NULL, mask);
    case 2: return pselect(0, NULL, NULL, NULL, NULL, mask);
    case 3: return epoll_pwait(epoll, &event, 1, -1, mask);
    }
    struct {
        const sigset_t *mask;
        size_t bytes;
    } set = {mask, 8};
    struct io_event aio_event;
    if (call == 4 && aio) return (int)syscall(SYS_io_pgetevents, aio, 1, 1, &aio_event, NULL, &set);
    struct io_uring_getevents_arg arg = {.sigmask = (uintptr_t)mask, .sigmask_sz = 8};
    if (call == 5 && ring >= 0)
        return (int)syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, mask, 8);
    if (call == 6 && ring >= 0)
        return (int)syscall(SYS_io_uring_enter, ring, 0, 1,
                            IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg);
    return ppoll(NULL, 0, NULL, mask);
}

// Return the membership of SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH and SIGALRM as five decimal digits.
static int members(const sigset_t *s) {
    static const int of[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM};
    int is = 0;
    for (int i = 0; i < 5; i++) is = is * 10 + sigismember(s, of[i]);
    return is;
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    sigset_t caller, waiting, is;
    thread[me] = pthread_self();
    epoll = epoll_create1(EPOLL_CLOEXEC);
    sigemptyset(&caller);
    sigaddset(&caller, SIGUSR1);
    sigaddset(&caller, SIGUSR2);
    sigemptyset(&waiting);
    sigaddset(&waiting, SIGUSR2);
    sigaddset(&waiting, SIGHUP);
    for (int round = 0; round < ROUNDS; round++) {
        int call = round / 2 % CALLS;
        OK(pthread_sigmask(SIG_SETMASK, &caller, NULL));
        first = second = 0;
        if (round & 1)
            send(pthread_self());
        else
            atomic_store(&asks[me], 1);
        int r = wait_with(call, &waiting), error = errno;
        CHECK(r == -1 && error == EINTR, "call %d: %d, %s", call, r, strerror(error));
        EQ(first, 1);
        EQ(members(&seen), 11110); // the call's mask, the signal, and the action's SIGWINCH
        OK(pthread_sigmask(SIG_SETMASK, NULL, &is));
        EQ(members(&is), 1100);
        EQ(second, 0);
        while (atomic_load(&asks[me])) sched_yield();
        sigemptyset(&is);
        OK(pthread_sigmask(SIG_SETMASK, &is, NULL));
        EQ(second, 1);
    }
    close(epoll);
    atomic_store(&asks[me], -1);
    return NULL;
}

int main(void) {
    t_watchdog();
    struct io_uring_params params = {0};
    ring = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (syscall(SYS_io_setup, 1, &aio)) aio = 0;
    struct sigaction a = {.sa_handler = on_first};
    sigaddset(&a.sa_mask, SIGWINCH);
    SYS(sigaction(SIGUSR1, &a, NULL));
    sigemptyset(&a.sa_mask);
    a.sa_handler = on_second;
    SYS(sigaction(SIGUSR2, &a, NULL));
    int n = t_threads(), left = n;
    pthread_t t[THREADS];
    for (int i = 0; i < n; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    while (left) {
        left = 0;
        for (int i = 0; i < n; i++) {
            int asked = atomic_load(&asks[i]);
            left += asked >= 0;
            if (asked != 1) continue;
            send(thread[i]);
            atomic_store(&asks[i], 0);
        }
        sched_yield();
    }
    for (int i = 0; i < n; i++) t_join(t[i]);
    return t_ok("signal_wait_mask");
}
