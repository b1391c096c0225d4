// Threads that only compute, on memory of their own, have longer slices than others. Threads that
// sleep or are woken still run before them. The results of the computation are checked.
#include "pthread_test.h"
#include <semaphore.h>

enum { WORDS = 4096, STEPS = 20000000 };
static volatile int stop, over; // over: no further pings
static sem_t ping, pong;

static uint64_t mix(uint64_t x) {
    x ^= x << 13, x ^= x >> 7;
    return x ^ x << 17;
}

// Each word sums up its steps in any order: the total is the sum of all steps.
static void *computes(void *arg) {
    uint64_t *words = calloc(WORDS, sizeof *words),
             x = (uint64_t)(uintptr_t)arg + 88172645463325252u;
    uint64_t added = 0, sum = 0;
    for (long i = 0; i < STEPS; i++) {
        x = mix(x);
        words[x % WORDS] += x;
        added += x;
    }
    for (int i = 0; i < WORDS; i++) sum += words[i];
    EQ(sum, added);
    free(words);
    return arg;
}

static void *sleeps(void *arg) {
    long n = 0;
    while (!stop) t_sleep_us(500), n++;
    CHECK(n > 0, "never slept");
    return arg;
}

static void *answers(void *arg) {
    do {
        while (sem_wait(&ping)) EQ(errno, EINTR);
        SYS(sem_post(&pong));
    } while (!over);
    return arg;
}

static void *asks(void *arg) {
    while (!stop) {
        t_sleep_us(300);
        SYS(sem_post(&ping));
        while (sem_wait(&pong)) EQ(errno, EINTR);
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    SYS(sem_init(&ping, 0, 0));
    SYS(sem_init(&pong, 0, 0));
    pthread_t sleeper = t_spawn(sleeps, NULL), answering = t_spawn(answers, NULL),
              asking = t_spawn(asks, NULL);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(computes, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    stop = 1;
    t_join(sleeper);
    t_join(asking);
    over = 1;
    SYS(sem_post(&ping));
    t_join(answering);
    return t_ok("process_slices");
}
