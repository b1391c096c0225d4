// Signals that the runtime never blocks in the kernel (faults' and its own), sent by kill(2) and
// similar calls to threads that block them. They must be pending as natively, for the thread or the
// process. A thread that unblocks them or waits for them gets them with their data. Children and
// executed programs have the mask. A blocked fault ends the process.
#include "pthread_test.h"
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static const int held[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGURG, SIGSYS, 64};
enum { HELD = sizeof held / sizeof *held };
static pthread_barrier_t barrier;
static pthread_t other;
static volatile int last, value, here, stop;
static volatile pthread_t handled_by;
static char *program;

static sigset_t set_of(int sig) {
    sigset_t s;
    sigemptyset(&s);
    if (sig) sigaddset(&s, sig);
    return s;
}
static sigset_t all_held(void) {
    sigset_t s = set_of(0);
    for (int i = 0; i < HELD; i++) sigaddset(&s, held[i]);
    return s;
}
static void handler(int sig, siginfo_t *info, void *context) {
    (void)context;
    last = sig;
    value = info->si_value.sival_int;
    handled_by = pthread_self();
    here++;
}
static void nothing(int sig) { (void)sig; }
static void handle_all(void) {
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < HELD; i++) SYS(sigaction(held[i], &a, NULL));
}
static void meet(void) { pthread_barrier_wait(&barrier); }
static void block(int how, int sig) {
    sigset_t s = set_of(sig);
    OK(pthread_sigmask(how, &s, NULL));
}
static int is_pending(int sig) {
    sigset_t s;
    SYS(sigpending(&s));
    return sigismember(&s, sig);
}
static void queue(int sig, int number) {
    SYS(sigqueue(getpid(), sig, (union sigval){.sival_int = number}));
}

// All threads block the signal: it is pending until one of them unblocks it or waits for it.
static void *one(void *arg) {
    sigset_t s = all_held();
    OK(pthread_sigmask(SIG_BLOCK, &s, NULL));
    meet();
    for (int i = 0; i < HELD; i++) {
        int sig = held[i];
        siginfo_t info;
        s = set_of(sig);
        meet(); // main sends it to the process
        meet();
        EQ(is_pending(sig), 1);
        block(SIG_UNBLOCK, sig);
        EQ(last, sig);
        EQ(value, i);
        CHECK(pthread_equal(handled_by, pthread_self()), "another thread's handler");
        block(SIG_BLOCK, sig);
        EQ(is_pending(sig), 0);
        meet();
        meet(); // main sends it again
        EQ(sigwaitinfo(&s, &info), sig);
        EQ(info.si_value.sival_int, 100 + i);
        EQ(info.si_code, SI_QUEUE);
        meet(); // main sends it during the wait
        EQ(sigwaitinfo(&s, &info), sig);
        EQ(info.si_value.sival_int, 200 + i);
        meet();
        meet(); // main takes it
        EQ(is_pending(sig), 0);
        meet();
        meet(); // main ignores it now, which discards it
        EQ(is_pending(sig), 0);
        struct timespec none = {0, 0};
        ERR(sigtimedwait(&s, NULL, &none), EAGAIN);
        meet();
        sigset_t open;
        sigfillset(&open);
        sigdelset(&open, sig);
        here = 0;
        meet(); // main sends it during the wait, or before
        ERR(sigsuspend(&open), EINTR);
        EQ(last, sig);
        EQ(here, 1);
        meet();
    }
    return arg;
}
static void all_block(void) {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    sigset_t s = all_held(), before;
    OK(pthread_sigmask(SIG_BLOCK, &s, &before));
    other = t_spawn(one, NULL);
    meet();
    for (int i = 0; i < HELD; i++) {
        int sig = held[i];
        meet();
        queue(sig, i);
        meet();
        meet();
        queue(sig, 100 + i);
        meet();
        meet();
        usleep(i % 2 ? 2000 : 0);
        queue(sig, 200 + i);
        meet();
        here = 0;
        OK(pthread_kill(pthread_self(), sig));
        EQ(is_pending(sig), 1);
        EQ(here, 0);
        meet();
        meet();
        block(SIG_UNBLOCK, sig);
        EQ(here, 1);
        EQ(last, sig);
        block(SIG_BLOCK, sig);
        queue(sig, 0);
        struct sigaction ignore = {.sa_handler = SIG_IGN};
        SYS(sigaction(sig, &ignore, NULL));
        handle_all();
        EQ(is_pending(sig), 0);
        meet();
        meet();
        meet();
        if (i % 2) usleep(2000);
        SYS(kill(getpid(), sig));
        meet();
    }
    t_join(other);
    OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

// One thread does not block the signals: it must handle those sent to the process.
static void *open_one(void *arg) {
    meet();
    while (!stop) {}
    return arg;
}
static void one_does_not(void) {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    other = t_spawn(open_one, NULL);
    sigset_t s = all_held(), before;
    OK(pthread_sigmask(SIG_BLOCK, &s, &before));
    meet();
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < HELD; i++) {
            here = 0;
            queue(held[i], i);
            while (!here) sched_yield();
            EQ(last, held[i]);
            EQ(value, i);
            CHECK(pthread_equal(handled_by, other), "it was blocked there");
        }
    stop = 1;
    t_join(other);
    OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

// Threads that block a signal and wait for something else must not keep it from a thread that waits
// for it.
enum { SELECTS, POLLS, WAITS_FOR_ANOTHER, ASKS, KINDS };
static void *waits(void *kind) {
    sigset_t all, urg = set_of(SIGURG);
    sigfillset(&all);
    struct timespec some = {0, 2000000};
    meet();
    while (!stop) switch ((int)(intptr_t)kind) {
        case SELECTS: EQ(pselect(0, NULL, NULL, NULL, &some, NULL), 0); break;
        case POLLS: EQ(ppoll(NULL, 0, &some, &all), 0); break;
        case WAITS_FOR_ANOTHER: ERR(sigtimedwait(&urg, NULL, &some), EAGAIN); break;
        case ASKS: is_pending(SIGFPE); break;
        }
    return NULL;
}
static void others_wait(void) {
    sigset_t s = all_held(), before, fpe = set_of(SIGFPE);
    OK(pthread_sigmask(SIG_BLOCK, &s, &before));
    for (intptr_t kind = 0; kind < KINDS; kind++) {
        siginfo_t info;
        stop = 0;
        OK(pthread_barrier_init(&barrier, NULL, 2));
        other = t_spawn(waits, (void *)kind);
        meet();
        for (int round = 0; round < 20; round++) {
            queue(SIGFPE, round);
            usleep(300);
            EQ(sigwaitinfo(&fpe, &info), SIGFPE);
            EQ(info.si_value.sival_int, round);
            EQ(info.si_errno, 0);
        }
        stop = 1;
        t_join(other);
    }
    OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

// Blocked signals without handlers are pending and end no process.
static void *takes(void *arg) {
    for (int i = 0; i < HELD; i++) {
        sigset_t s = set_of(held[i]);
        siginfo_t info;
        EQ(sigwaitinfo(&s, &info), held[i]);
        EQ(info.si_value.sival_int, i);
        meet();
    }
    return arg;
}
static void no_handlers(void) {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    sigset_t s = all_held(), before;
    OK(pthread_sigmask(SIG_BLOCK, &s, &before));
    other = t_spawn(takes, NULL);
    for (int i = 0; i < HELD; i++) {
        if (i % 2) usleep(2000);
        queue(held[i], i);
        meet();
    }
    t_join(other);
    OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

// Threads exit by exit(2) while signals are sent to them.
static volatile int ending;
static void *ends(void *arg) {
    ending = gettid();
    for (volatile long i = (long)arg * 97 % 3000; i > 0; i--) {}
    syscall(SYS_exit, 0);
    return arg;
}
static void exits(void) {
    for (long i = 0; i < 300; i++) {
        ending = 0;
        pthread_t t = t_spawn(ends, (void *)i);
        while (!ending) {}
        while (!syscall(SYS_tgkill, getpid(), ending, SIGUSR1)) {}
        t_join(t);
    }
}

// Exit codes of children: 11: the executed program has the mask and the pending signal.
static int status_of(pid_t child) {
    int status;
    SYS(child);
    while (waitpid(child, &status, 0) == -1) EQ(errno, EINTR);
    return status;
}
static void *idle(void *arg) {
    meet();
    return arg;
}
// Return 0 if all signals are ignored: exec inherits that.
static int ignores(void) {
    for (int i = 0; i < HELD; i++) {
        struct sigaction now;
        SYS(sigaction(held[i], NULL, &now));
        if (now.sa_handler != SIG_IGN) return held[i];
    }
    return 0;
}
static int executed(void) {
    sigset_t now, pending, want = all_held();
    SYS(sigprocmask(SIG_BLOCK, NULL, &now));
    SYS(sigpending(&pending));
    for (int n = 1; n < 65; n++)
        if (sigismember(&now, n) != sigismember(&want, n)) return 12;
    return sigismember(&pending, SIGFPE) ? 11 : 13;
}
// Inlined: a child that shares the stack must not return from a function.
static inline __attribute__((always_inline)) pid_t clone_without_handlers(uint64_t flags) {
    struct clone_args a = {.flags = flags | CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
    return (pid_t)t_raw(SYS_clone3, (long)&a, sizeof a, 0, 0, 0);
}
static void children(void) {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    pthread_t t = t_spawn(idle, NULL); // activates the runtime
    sigset_t s = all_held(), before;
    OK(pthread_sigmask(SIG_BLOCK, &s, &before));
    pid_t child = fork();
    if (!child) {
        EQ(is_pending(SIGFPE), 0);
        SYS(kill(getpid(), SIGFPE));
        execl(program, program, "executed", NULL);
        _exit(14);
    }
    EQ(WEXITSTATUS(status_of(child)), 11);
    char *const command[] = {program, "executed", NULL};
    extern char **environ;
    OK(posix_spawn(&child, program, NULL, NULL, command, environ));
    EQ(WEXITSTATUS(status_of(child)), 13);
    child = vfork();
    if (!child) {
        execl(program, program, "executed", NULL);
        _exit(14);
    }
    EQ(WEXITSTATUS(status_of(child)), 13);
    child = fork();
    if (!child) { // the handler must not run
        *(volatile char *)8 = 1;
        _exit(15);
    }
    int status = status_of(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %x", (unsigned)status);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (int i = 0; i < HELD; i++) SYS(sigaction(held[i], &ignore, NULL));
    char *const asks[] = {program, "ignores", NULL};
    OK(posix_spawn(&child, program, NULL, NULL, asks, environ));
    EQ(WEXITSTATUS(status_of(child)), 0);
    child = clone_without_handlers(CLONE_VM | CLONE_VFORK); // as posix_spawn since glibc 2.38
    if (!child) {
        execv(program, asks);
        _exit(14);
    }
    EQ(WEXITSTATUS(status_of(child)), 0);
    child = clone_without_handlers(0);
    if (!child) {
        struct sigaction now;
        SYS(sigaction(SIGUSR1, NULL, &now)); // has a handler in the parent
        CHECK(now.sa_handler == SIG_DFL, "a handler was kept");
        execv(program, asks);
        _exit(14);
    }
    EQ(WEXITSTATUS(status_of(child)), 0);
    child = fork();
    if (!child) {
        execl("/nonexistent", program, "ignores", NULL);
        execl(program, program, "ignores", NULL);
        _exit(14);
    }
    EQ(WEXITSTATUS(status_of(child)), 0);
    handle_all();
    meet();
    t_join(t);
    OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

// SIGURG through a descriptor.
static void descriptor(void) {
    OK(pthread_barrier_init(&barrier, NULL, 2));
    sigset_t s = set_of(SIGURG), before;
    OK(pthread_sigmask(SIG_BLOCK, &s, &before));
    pthread_t t = t_spawn(idle, NULL);
    int fd = signalfd(-1, &s, SFD_CLOEXEC);
    SYS(fd);
    for (int i = 0; i < 100; i++) {
        struct signalfd_siginfo info;
        SYS(kill(getpid(), SIGURG));
        EQ(read(fd, &info, sizeof info), (long)sizeof info);
        EQ((int)info.ssi_signo, SIGURG);
    }
    SYS(close(fd));
    meet();
    t_join(t);
    OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

int main(int argc, char **argv) {
    if (argc == 2) return strcmp(argv[1], "ignores") ? executed() : ignores();
    program = argv[0];
    t_watchdog();
    PHASE("no handlers");
    no_handlers();
    handle_all();
    struct sigaction usr1 = {.sa_handler = nothing};
    SYS(sigaction(SIGUSR1, &usr1, NULL));
    PHASE("threads end");
    exits();
    PHASE("all block them");
    all_block();
    PHASE("one does not");
    one_does_not();
    PHASE("others wait");
    others_wait();
    PHASE("children");
    children();
    PHASE("a descriptor");
    descriptor();
    return t_ok("signal_held");
}
