// Code on small stacks of its own, in threads whose handlers all have SA_ONSTACK, with more
// computing threads than CPUs. Nothing may be written below its stack pointer, and its handlers run
// on the thread's alternate stack.
#include "pthread_test.h"
#include <signal.h>

enum { SMALL = 32768, ALTERNATE = 32768, PATTERN = 0x5a, RED_ZONE = 128 };
static int rounds;
static volatile int stop, arrived;
static int ready[1024], all;
static pthread_barrier_t last;
static __thread char *alternate;
static __thread int handled;

static void handler(int sig) {
    char here;
    (void)sig;
    CHECK(&here >= alternate && &here < alternate + ALTERNATE, "a handler on another stack");
    handled++;
    arrived = 1;
}
static void __attribute__((noinline)) compute_on(char *top, long turns) {
    __asm__ volatile(
        "movq %%rsp, %%r12\n\tmovq %0, %%rsp\n1:\tdecq %1\n\tjnz 1b\n\tmovq %%r12, %%rsp"
        : "+r"(top), "+r"(turns)
        :
        : "r12", "memory", "cc");
}
static void *work(void *arg) {
    stack_t s = {.ss_sp = alternate = malloc(ALTERNATE), .ss_size = ALTERNATE};
    SYS(sigaltstack(&s, NULL));
    __atomic_store_n(&ready[(intptr_t)arg], 1, __ATOMIC_SEQ_CST);
    char *small = aligned_alloc(4096, SMALL), *top = small + SMALL
    -64;
    for (int i = 0; i < rounds || !arrived; i++) { // the pest may be the last to run
        memset(small, PATTERN, SMALL);
        compute_on(top, 2000000);
        for (char *p = small; p < top - RED_ZONE; p++)
            CHECK(*p == PATTERN, "round %d: written %ld bytes below the stack pointer", i,
                  (long)(top - p));
    }
    pthread_barrier_wait(&last);
    pthread_barrier_wait(&last); // no thread sends signals any more
    __atomic_add_fetch(&all, handled, __ATOMIC_SEQ_CST);
    s.ss_flags = SS_DISABLE;
    SYS(sigaltstack(&s, NULL));
    free(alternate);
    free(small);
    return arg;
}
static void *pest(void *arg) {
    pthread_t *t = arg;
    for (int i = 0; !stop; i = (i + 1) % t_threads()) {
        if (__atomic_load_n(&ready[i], __ATOMIC_SEQ_CST)) OK(pthread_kill(t[i], SIGUSR1));
        t_sleep_us(200);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(600, threads);
    pthread_t *t = calloc(1024, sizeof *t);
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    SYS(sigaction(SIGUSR1, &sa, NULL));
    OK(pthread_barrier_init(&last, NULL, (unsigned)threads + 1));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    pthread_t p = t_spawn(pest, t);
    pthread_barrier_wait(&last);
    stop = 1;
    t_join(p);
    pthread_barrier_wait(&last);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    CHECK(all > 0, "no signal arrived");
    return t_ok("signal_stacks");
}
