/* SPDX-License-Identifier: MIT */
// A process of one thread that shares memory, and computes beside others that want its CPU. The
// runtime activates itself at an arbitrary point; the program must not notice.
//     start_alone plain | altstack | coroutine | seccomp
#include "cpus_change.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

enum { BURN_MS = 60, WAIT_MS = 20000, LONG_MS = 600 };

static int pipes[2];
static volatile int handled;
static char alternate[65536], small[65536];
static ucontext_t main_context, coroutine;

static void burn(int ms) {
    int64_t end = t_now(CLOCK_PROCESS_CPUTIME_ID) + ms * 1000000ll;
    uint64_t x = 1;
    do
        for (int i = 0; i < 100000; i++) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    while (t_now(CLOCK_PROCESS_CPUTIME_ID) < end);
    CHECK(x, "no random numbers left");
}

static void hog(void) {
    while (c_parent_lives()) burn(20);
    _exit(0);
}

// Make blocking calls; none may return early.
static void make_calls(void) {
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};
    char byte = 1;
    EQ(poll(&p, 1, 1), 0);
    struct timespec ms = {0, 1000000};
    EQ(nanosleep(&ms, NULL), 0);
    EQ(write(pipes[1], &byte, 1), 1);
    EQ(poll(&p, 1, 1000), 1);
    EQ(read(pipes[0], &byte, 1), 1);
}

static void handler(int sig) {
    char here;
    uintptr_t offset = (uintptr_t)&here - (uintptr_t)alternate;
    handled += offset < sizeof alternate ? sig : 1000;
}

static void has_alternate_stack(int has) {
    stack_t now;
    SYS(sigaltstack(NULL, &now));
    EQ(now.ss_flags & SS_DISABLE, has ? 0 : SS_DISABLE);
    if (!has) return;
    EQ(now.ss_sp, (void *)alternate);
    handled = 0;
    raise(SIGUSR1);
    EQ(handled, SIGUSR1);
}

static void signals_are_as_before(void) {
    sigset_t set;
    SYS(sigpending(&set));
    CHECK(sigisemptyset(&set), "a signal is pending");
    OK(pthread_sigmask(SIG_BLOCK, NULL, &set));
    EQ(sigismember(&set, SIGUSR2), 1);
    sigdelset(&set, SIGUSR2);
    CHECK(sigisemptyset(&set), "another signal is blocked");
}

static int is_active(void) { return c_slots(getpid()) >= 0; }

// Check that the runtime does not activate itself on a small stack.
static void computes_on_small_stack(void) {
    burn(LONG_MS);
    CHECK(!is_active(), "the runtime has begun there");
}

static void forbid_open(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SYS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void *counts(void *n) {
    ++*(int *)n;
    return n;
}

static void goes_on(void) {
    int n = 0, status;
    pthread_t t;
    pid_t child = fork();
    if (!child) _exit(7);
    EQ(waitpid(child, &status, 0), child);
    EQ(WEXITSTATUS(status), 7);
    OK(pthread_create(&t, NULL, counts, &n));
    OK(pthread_join(t, NULL));
    EQ(n, 1);
}

int main(int argc, char **argv) {
    CHECK(argc == 2, "a mode");
    c_region(argv);
    int altstack = !strcmp(argv[1], "altstack"), confined = !strcmp(argv[1], "seccomp");
    int expects = getenv("LD_PRELOAD") && !confined;
    SYS(pipe(pipes));
    long hogs = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < hogs; i++)
        if (!fork()) hog();
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    OK(pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    if (altstack) {
        stack_t s = {.ss_sp = alternate, .ss_size = sizeof alternate};
        struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        SYS(sigaltstack(&s, NULL));
        SYS(sigaction(SIGUSR1, &a, NULL));
    }
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "no memory");
    if (confined) forbid_open();
    if (!strcmp(argv[1], "coroutine")) {
        SYS(getcontext(&coroutine));
        coroutine.uc_stack = (stack_t){.ss_sp = small, .ss_size = sizeof small};
        coroutine.uc_link = &main_context;
        makecontext(&coroutine, computes_on_small_stack, 0);
        SYS(swapcontext(&main_context, &coroutine));
    }
    int64_t began = t_now(CLOCK_MONOTONIC);
    for (int after = 0; after < 5; after += !expects || is_active()) {
        burn(BURN_MS);
        make_calls();
        signals_are_as_before();
        has_alternate_stack(altstack);
        CHECK(t_now(CLOCK_MONOTONIC) - began < WAIT_MS * 1000000ll, "it has not begun");
    }
    EQ(!!is_active(), expects);
    if (!confined) goes_on();
    printf("ok start_alone\n");
    return 0;
}
