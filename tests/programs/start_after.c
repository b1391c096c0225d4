/* SPDX-License-Identifier: MIT */
// Changes that a process of one thread makes to itself before it creates the second one. They must
// hold for its threads as natively:
//     start_after seccomp | syscall | chroot | vfork | setuid | undumpable
//         | handlers | descriptors | timer
#include "start_test.h"
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

// Kill any thread that opens a file from now on.
static void forbid_open(int by_syscall) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (by_syscall)
        SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    else
        SYS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void into_empty_root(void) {
    char folder[] = "/tmp/lissom-test-root-XXXXXX";
    CHECK(mkdtemp(folder));
    SYS(chroot(folder));
    SYS(chdir("/"));
    EQ(access("/proc", F_OK), -1);
}

// Run a child that shares the memory, and changes itself as before exec.
static void confine_child(void) {
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();
        if (!child) {
            if (chroot("/")) _exit(1);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0); // fails
            _exit(3);
        }
        int status;
        EQ(waitpid(child, &status, 0), child);
        EQ(WEXITSTATUS(status), 3);
    }
}

// --- handlers, a mask and an alternate stack, set before -----------------------------------------

static char stack[65536];
static volatile int on_stack, handled[2];

static void on_usr1(int sig, siginfo_t *info, void *context) {
    char here;
    (void)context;
    on_stack = &here >= stack && &here < stack + sizeof stack;
    handled[0] = sig == SIGUSR1 && info->si_pid == getpid();
}
static void on_usr2(int sig) { handled[1] = sig; }

static void prepare_signals(void) {
    stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction a = {.sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    SYS(sigaltstack(&s, NULL));
    SYS(sigaction(SIGUSR1, &a, NULL));
    SYS(signal(SIGUSR2, on_usr2) == SIG_ERR ? -1 : 0);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    SYS(sigprocmask(SIG_BLOCK, &mask, NULL));
}

static void signals_hold(void) {
    struct sigaction a;
    stack_t s;
    sigset_t mask;
    SYS(sigaction(SIGUSR1, NULL, &a));
    CHECK(a.sa_sigaction == on_usr1 && (a.sa_flags & SA_ONSTACK));
    SYS(sigaltstack(NULL, &s));
    CHECK(s.ss_sp == stack && s.ss_size == sizeof stack && s.ss_flags == 0);
    OK(pthread_kill(pthread_self(), SIGUSR1));
    CHECK(handled[0] && on_stack);
    OK(pthread_kill(pthread_self(), SIGUSR2));
    EQ(handled[1], 0);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    SYS(sigprocmask(SIG_UNBLOCK, &mask, NULL));
    EQ(handled[1], SIGUSR2);
}

// --- descriptors ---------------------------------------------------------------------------------

static int signals;

// Open a signalfd that would read the runtime's own signals.
static void open_signalfd(void) {
    sigset_t all;
    sigfillset(&all);
    SYS(sigprocmask(SIG_BLOCK, &all, NULL));
    SYS(signals = signalfd(-1, &all, SFD_NONBLOCK));
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                                   .exclude_kernel = 1};
    syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0); // if permitted
}

static void no_signal_is_read(void) {
    struct signalfd_siginfo info;
    EQ(read(signals, &info, sizeof info), -1);
    EQ(errno, EAGAIN);
    SYS(kill(getpid(), SIGTERM));
    EQ(read(signals, &info, sizeof info), sizeof info);
    EQ(info.ssi_signo, SIGTERM);
}

// --- a timer on the first thread's CPU time ------------------------------------------------------

static volatile int ticks;
static void on_tick(int sig) { ticks += sig == SIGRTMIN; }

static void set_timer(void) {
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    SYS(signal(SIGRTMIN, on_tick) == SIG_ERR ? -1 : 0);
    SYS(timer_create(CLOCK_THREAD_CPUTIME_ID, &e, &timer));
    struct itimerspec s = {{0, 5000000}, {0, 5000000}};
    SYS(timer_settime(timer, 0, &s, NULL));
}

static void compute_until_tick(void) {
    for (int before = ticks; ticks == before;) {}
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    t_watchdog();
    if (!strcmp(what, "seccomp")) forbid_open(0);
    if (!strcmp(what, "syscall")) forbid_open(1);
    if (!strcmp(what, "chroot")) into_empty_root();
    if (!strcmp(what, "vfork")) confine_child();
    if (!strcmp(what, "setuid")) SYS(setuid(65534));
    if (!strcmp(what, "undumpable")) {
        SYS(setuid(65534));
        SYS(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    }
    if (!strcmp(what, "handlers")) prepare_signals();
    if (!strcmp(what, "descriptors")) open_signalfd();
    if (!strcmp(what, "timer")) set_timer();
    s_threads_work();
    if (!strcmp(what, "handlers")) signals_hold();
    if (!strcmp(what, "descriptors")) no_signal_is_read();
    if (!strcmp(what, "timer")) compute_until_tick();
    s_threads_work();
    return t_ok("start_after");
}
