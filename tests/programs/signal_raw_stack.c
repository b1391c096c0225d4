// A program sets an alternate stack by a system call that the runtime does not see. Its handler
// runs there and makes blocking calls, while other signals arrive. The stack's contents must not
// change.
#include "pthread_test.h"
#include <signal.h>
#include <stdatomic.h>

enum { STACK = 65536, ROUNDS = 50, CALLS = 20 };
static t_syscall *raw;
static atomic_int seen, stop;

static void waits(int sig) {
    volatile int guard[64];
    (void)sig;
    for (int i = 0; i < 64; i++) guard[i] = i;
    for (int i = 0; i < CALLS; i++) {
        sched_yield();
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    for (int i = 0; i < 64; i++) EQ(guard[i], i);
}

static void counts(int sig) {
    (void)sig;
    atomic_fetch_add(&seen, 1);
}

static void *work(void *arg) {
    stack_t s = {.ss_sp = malloc(STACK), .ss_size = STACK};
    for (int i = 0; i < ROUNDS; i++) {
        EQ(raw(SYS_sigaltstack, (long)&s, 0, 0, 0), 0);
        OK(pthread_kill(pthread_self(), SIGUSR1));
    }
    s.ss_flags = SS_DISABLE;
    EQ(raw(SYS_sigaltstack, (long)&s, 0, 0, 0), 0);
    SYS(sigaltstack(&s, NULL));
    atomic_fetch_add(&stop, 1);
    return arg;
}

int main(void) {
    static pthread_t thread[1024];
    int threads = t_threads();
    t_watchdog();
    raw = t_hidden_syscall();
    struct sigaction a = {.sa_handler = waits, .sa_flags = SA_ONSTACK | SA_RESTART};
    SYS(sigaction(SIGUSR1, &a, NULL));
    a.sa_handler = counts;
    SYS(sigaction(SIGUSR2, &a, NULL));
    for (int i = 0; i < threads; i++) thread[i] = t_spawn(work, NULL);
    for (int i = 0; stop < threads; i++) {
        pthread_kill(thread[i % threads], SIGUSR2);
        t_sleep_ms(i % 8 == 0);
    }
    for (int i = 0; i < threads; i++) t_join(thread[i]);
    CHECK(seen > 0, "no signal");
    return t_ok("signal_raw_stack");
}
