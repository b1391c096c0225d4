// A token travels around threads that wait for it by polling for events with a timeout of 0.
#include "spin_test.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

static void *run(void *arg) {
    int me = (int)(intptr_t)arg, end[2], instance = epoll_create1(0);
    CHECK(pipe(end) == 0 && instance >= 0, "no descriptors");
    struct epoll_event e = {.events = EPOLLIN};
    CHECK(epoll_ctl(instance, EPOLL_CTL_ADD, end[0], &e) == 0, "epoll_ctl");
    for (uint32_t round = 1, more = 1; more; round++) {
        while (spin_cell[me].word < round) {
            struct pollfd p = {.fd = end[0], .events = POLLIN};
            EQ(me % 2 ? poll(&p, 1, 0) : epoll_wait(instance, &e, 1, 0), 0);
        }
        more = (uint32_t)spin_more(me, round);
        spin_pass(me, round);
    }
    CHECK(write(end[1], "", 1) == 1, "write");
    struct pollfd p = {.fd = end[0], .events = POLLIN};
    EQ(poll(&p, 1, 0), 1);
    close(end[0]), close(end[1]), close(instance);
    return arg;
}

int main(void) {
    t_watchdog();
    spin_threads = t_threads();
    spin_begin(500);
    spin_start_token();
    t_run(spin_threads, run);
    return t_ok("spin_polls");
}
