// Threads that block in the kernel rather than on a futex must not keep others from running: rings
// over pipes, socket pairs, eventfds and epoll; poll and select with timeouts; nanosleep and
// clock_nanosleep, which are never early.
#include "pthread_test.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>

static int threads, rounds, kind, fds[1024][2], counter;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void pass(int to) {
    uint64_t one = 1;
    size_t size = kind == 2 ? 8 : 1;
    EQ(write(fds[to][1], &one, size), (long)size);
}
static void *ring(void *arg) {
    int me = (int)(intptr_t)arg;
    uint64_t v;
    int ep = -1;
    if (kind == 3) {
        struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 77};
        SYS(ep = epoll_create1(EPOLL_CLOEXEC));
        SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fds[me][0], &ev));
    }
    for (int i = 0; i < rounds; i++) {
        if (kind == 3) {
            struct epoll_event ev;
            int n;
            while ((n = epoll_wait(ep, &ev, 1, i & 1 ? -1 : 100000)) == -1) EQ(errno, EINTR);
            EQ(n, 1);
            EQ(ev.data.u32, 77);
        } else if (kind == 4) {
            struct pollfd p = {fds[me][0], POLLIN, 0};
            EQ(poll(&p, 1, 100000), 1);
        }
        size_t size = kind == 2 ? 8 : 1;
        EQ(read(fds[me][0], &v, size), (long)size);
        OK(pthread_mutex_lock(&mutex)); // mixes in futexes
        counter++;
        OK(pthread_mutex_unlock(&mutex));
        pass((me + 1) % threads);
    }
    if (ep >= 0) close(ep);
    return NULL;
}
static void *sleeps(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 3; i++) {
        int64_t length = 1000000 + me * 1000, start = t_now(CLOCK_MONOTONIC);
        struct timespec t = t_ts(length), tv = t_ts(length);
        SYS(nanosleep(&t, NULL));
        CHECK(t_now(CLOCK_MONOTONIC) - start >= length, "nanosleep early");
        t = t_ts(t_now(CLOCK_MONOTONIC) + length);
        EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), 0);
        CHECK(t_now(CLOCK_MONOTONIC) >= (int64_t)t.tv_sec * 1000000000 + t.tv_nsec,
              "clock_nanosleep early");
        start = t_now(CLOCK_MONOTONIC);
        EQ(poll(NULL, 0, 2), 0);
        CHECK(t_now(CLOCK_MONOTONIC) - start >= 2000000, "poll early");
        EQ(pselect(0, NULL, NULL, NULL, &tv, NULL), 0);
        sched_yield();
    }
    return NULL;
}
// Threads wait in the kernel for data that only another thread can write, on any number of CPUs.
static void *late_writer(void *arg) {
    for (int i = 0; i < threads; i++) pass(i);
    return arg;
}
static void *reader(void *arg) {
    uint64_t v;
    EQ(read(fds[(intptr_t)arg][0], &v, 1), 1);
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    for (kind = 0; kind < 5; kind++) {
        PHASE("rings");
        for (int i = 0; i < threads; i++) {
            if (kind == 1)
                SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]));
            else if (kind == 2)
                SYS(fds[i][0] = fds[i][1] =
                        eventfd(0, EFD_SEMAPHORE)); // otherwise two balls at once would merge
            else
                SYS(pipe(fds[i]));
        }
        rounds = t_share(2000, threads);
        counter = 0;
        for (int i = 0; i < threads; i++) t[i] = t_spawn(ring, (void *)(intptr_t)i);
        int balls = threads < 4 ? 1 : 3; // several balls at once
        for (int i = 0; i < balls; i++) pass(i * threads / balls);
        for (int i = 0; i < threads; i++) t_join(t[i]);
        EQ(counter, threads * rounds);
        if (kind == 4) {
            PHASE("all read, then one writes");
            kind = 0;
            uint64_t v;
            for (int i = 0; i < balls; i++) { // the remaining balls
                int found = 0;
                for (int k = 0; k < threads && !found; k++) {
                    struct pollfd p = {fds[k][0], POLLIN, 0};
                    if (poll(&p, 1, 0) == 1) found = (int)read(fds[k][0], &v, 1);
                }
                EQ(found, 1);
            }
            for (int i = 0; i < threads; i++) t[i] = t_spawn(reader, (void *)(intptr_t)i);
            t_sleep_ms(2);
            t_run(1, late_writer);
            for (int i = 0; i < threads; i++) t_join(t[i]);
            kind = 4;
        }
        for (int i = 0; i < threads; i++) {
            close(fds[i][0]);
            if (kind != 2) close(fds[i][1]);
        }
    }
    PHASE("sleeps");
    t_run(threads, sleeps);
    struct rusage ru;
    SYS(getrusage(RUSAGE_SELF, &ru));
    CHECK(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec < 600, "rusage");
    SYS(getrusage(RUSAGE_THREAD, &ru));
    return t_ok("process_io");
}
