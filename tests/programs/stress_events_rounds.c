// Teams of event loops, one after another. Each passes tokens around at random, until one loop ends
// the round and all leave. So often a single thread still waits, with no other to poll for it.
#include "pthread_test.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { MOST = 64, HOPS = 200 };
static int threads, inbox[MOST], instance[MOST];
static int hops, done;
static uint64_t seed;

static void send_to(int i) {
    uint64_t one = 1;
    EQ(write(inbox[i], &one, sizeof one), sizeof one);
}

static void pass_on(uint64_t *state) {
    int n = __atomic_add_fetch(&hops, 1, __ATOMIC_SEQ_CST);
    if (n < HOPS) {
        send_to((int)(t_rand(state) % (uint32_t)threads));
    } else if (n == HOPS) {
        __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
        for (int i = 0; i < threads; i++) send_to(i);
    }
}

static void *loop(void *arg) {
    int me = (int)(intptr_t)arg;
    uint64_t state = seed + (uint64_t)me * 7919, tokens;
    struct epoll_event got;
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
        int n = epoll_wait(instance[me], &got, 1, me % 5 == 3 ? (int)(t_rand(&state) % 5) : -1);
        CHECK(n >= 0, "epoll_wait = %d", n);
        if (n == 0) continue;
        EQ(read(inbox[me], &tokens, sizeof tokens), sizeof tokens);
        while (tokens-- > 0) pass_on(&state);
    }
    return NULL;
}

static void round_of(int n) {
    pthread_t team[MOST];
    hops = done = 0;
    seed += (uint64_t)n;
    for (int i = 0; i < threads; i++) {
        struct epoll_event ev = {.events = EPOLLIN};
        SYS(inbox[i] = eventfd(0, EFD_NONBLOCK));
        SYS(instance[i] = epoll_create1(EPOLL_CLOEXEC));
        SYS(epoll_ctl(instance[i], EPOLL_CTL_ADD, inbox[i], &ev));
    }
    for (int i = 0; i < threads; i++) team[i] = t_spawn(loop, (void *)(intptr_t)i);
    for (int i = 0; i < (threads + 1) / 2; i++) send_to(i);
    for (int i = 0; i < threads; i++) t_join(team[i]);
    for (int i = 0; i < threads; i++) {
        close(inbox[i]);
        close(instance[i]);
    }
}

int main(void) {
    t_watchdog();
    seed = t_seed();
    threads = t_threads() > MOST ? MOST : t_threads();
    for (int i = 0; i < t_env("ROUNDS", 200); i++) round_of(i);
    return t_ok("stress_events_rounds");
}
