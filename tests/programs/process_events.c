// Waits for events, some of which are pending and some not. Edge-triggered and one-shot events are
// reported once and not lost, errors are the kernel's, timeouts are not early. More threads than
// CPUs wait, and all make progress.
#include "pthread_test.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int threads, rounds, fds[1024];

static void *ring(void *arg) {
    int me = (int)(intptr_t)arg, ep;
    uint32_t how = me % 3 == 0 ? EPOLLET : me % 3 == 1 ? EPOLLONESHOT : 0;
    struct epoll_event ev = {.events = EPOLLIN | how, .data.u32 = 7}, got[4];
    SYS(ep = epoll_create1(EPOLL_CLOEXEC));
    SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fds[me], &ev));
    for (int i = 0; i < rounds; i++) {
        int n;
        while ((n = epoll_wait(ep, got, 4, i % 3 ? -1 : 100000)) == -1) EQ(errno, EINTR);
        EQ(n, 1);
        EQ(got[0].data.u32, 7);
        EQ(got[0].events, EPOLLIN);
        if (how) EQ(epoll_wait(ep, got, 4, 0), 0); // reported once
        uint64_t v, one = 1;
        EQ(read(fds[me], &v, 8), 8);
        if (how == EPOLLONESHOT) SYS(epoll_ctl(ep, EPOLL_CTL_MOD, fds[me], &ev));
        EQ(write(fds[(me + 1) % threads], &one, 8), 8);
    }
    close(ep);
    return NULL;
}

static void *edges(void *arg) {
    int fd, ep;
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT}, got[2];
    (void)arg;
    SYS(fd = eventfd(1, 0));
    SYS(ep = epoll_create1(0));
    SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
    for (int i = 0; i < rounds; i++) {
        struct pollfd p = {fd, POLLIN | POLLOUT, 0}, closed = {1000000, POLLIN, 0};
        EQ(poll(&p, 1, -1), 1);
        EQ(p.revents, POLLIN | POLLOUT);
        EQ(poll(&closed, 1, 1000), 1);
        EQ(closed.revents, POLLNVAL);
        EQ(epoll_wait(ep, got, 2, -1), 1);
        ERR(epoll_wait(ep, got, 0, -1), EINVAL);
        ERR(epoll_wait(fd, got, 2, -1), EINVAL);
        ERR(epoll_wait(1000000, got, 2, -1), EBADF);
        ERR(poll((struct pollfd *)8, 1, -1), EFAULT);
        int64_t begun = t_now(CLOCK_MONOTONIC);
        p.events = POLLPRI;
        EQ(poll(&p, 1, 2), 0);
        EQ(poll(NULL, 0, 1), 0);
        CHECK(t_now(CLOCK_MONOTONIC) - begun >= 3000000);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    rounds = t_share(20000, threads);
    for (int i = 0; i < threads; i++) SYS(fds[i] = eventfd(0, 0));
    uint64_t one = 1;
    EQ(write(fds[0], &one, 8), 8); // one token: two that meet would merge
    PHASE("ring");
    t_run(threads, ring);
    PHASE("edges");
    rounds = t_share(200, threads);
    t_run(threads, edges);
    return t_ok("process_events");
}
