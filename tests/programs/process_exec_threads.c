// A program of many threads executes itself again from one of them, while the others compute and
// wait. It has a handler for SIGURG, so the runtime preempts it by signal 64. A pending signal 64
// would kill the new program, which has no handler for it. Every other time the thread blocks 64,
// and the new program unblocks it.
#include "pthread_test.h"

static char **arguments;
static long left;
static pthread_barrier_t barrier;
static volatile uint64_t result;
static volatile int all_made;

static void on_urgent(int sig) { (void)sig; }

static void again(void) {
    char number[24];
    snprintf(number, sizeof number, "%ld", left - 1);
    execl("/proc/self/exe", arguments[0], number, NULL);
    FAIL("execl: %s", strerror(errno));
}

static void mask_64(int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, 64);
    OK(pthread_sigmask(how, &set, NULL));
}

static void *computes(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg + 1;
    int64_t until = t_now(CLOCK_MONOTONIC) + 5000000 + (int64_t)(t_seed_value % 97) * 100000;
    if (arg && left % 2) mask_64(SIG_BLOCK);
    for (;;) {
        for (int i = 0; i < 10000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
        result = x;
        if (arg && all_made && t_now(CLOCK_MONOTONIC) > until) again();
    }
    return arg;
}

static void *meets(void *arg) {
    for (;;) pthread_barrier_wait(&barrier);
    return arg;
}

int main(int argc, char **argv) {
    t_watchdog();
    arguments = argv;
    left = argc > 1 ? atol(argv[1]) : t_env("EXECS", 30);
    mask_64(SIG_UNBLOCK);
    if (!left) return t_ok("process_exec_threads");
    struct sigaction sa = {.sa_handler = on_urgent, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGURG, &sa, NULL));
    int threads = t_threads();
    OK(pthread_barrier_init(&barrier, NULL, 2));
    for (int i = 0; i < threads; i++)
        t_spawn(i % 4 == 3 ? meets : computes, i == threads / 2 ? (void *)1 : NULL);
    all_made = 1; // pthread_create fails once another thread calls exec
    pause();
    return 1;
}
