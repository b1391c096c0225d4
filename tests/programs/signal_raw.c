// A program that sets signal actions and alternate stacks by its own system calls, while its
// threads compute. The runtime does not know the calling code (a language runtime, for example).
// Handlers must run, and no thread may crash.
#include "pthread_test.h"
#include <signal.h>
#include <stdatomic.h>

enum { STACK = 65536, RESTORER = 0x04000000 };
static t_syscall *raw;
struct raw_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
__asm__(".globl raw_return\nraw_return:\n\tmov $15, %rax\n\tsyscall\n");
extern void raw_return(void);

static atomic_int handled, urgent, stop;
static void handler(int sig, siginfo_t *info, void *context) {
    (void)context;
    if (sig == SIGUSR1)
        atomic_fetch_add(&handled, 1);
    else if (info->si_code == SI_TKILL)
        atomic_fetch_add(&urgent, 1);
}
static void set_raw(int sig, unsigned long flags) {
    struct raw_action a = {handler, flags | SA_SIGINFO | SA_RESTART | RESTORER, raw_return, 0};
    EQ(raw(SYS_rt_sigaction, sig, (long)&a, 0, 8), 0);
}
static void *work(void *arg) {
    stack_t s = {.ss_sp = malloc(STACK), .ss_size = STACK};
    EQ(raw(SYS_sigaltstack, (long)&s, 0, 0, 0), 0);
    for (int i = 0; !stop; i++) {
        for (volatile int k = 0; k < 100000; k++) {}
        if (i % 16 == 0) {
            OK(pthread_kill(pthread_self(), SIGUSR1));
            EQ(raw(SYS_sigaltstack, (long)&s, 0, 0, 0), 0);
            EQ(raw(SYS_tgkill, getpid(), gettid(), SIGURG, 0), 0);
        }
        if (i % 8 == 0) sched_yield();
    }
    s.ss_flags = SS_DISABLE;
    SYS(sigaltstack(&s, NULL));
    EQ(raw(SYS_sigaltstack, (long)&s, 0, 0, 0), 0);
    return arg;
}

int main(void) {
    t_watchdog();
    raw = t_hidden_syscall();
    int threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    struct sigaction now;
    set_raw(SIGUSR1, SA_ONSTACK);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, NULL);
    t_sleep_ms(100);
    set_raw(SIGURG, SA_ONSTACK);
    set_raw(SIGSEGV, SA_ONSTACK);
    while (!handled || !urgent) t_sleep_ms(10);
    SYS(sigaction(SIGSEGV, NULL, &now));
    CHECK(now.sa_sigaction == handler, "the action is not known");
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("signal_raw");
}
