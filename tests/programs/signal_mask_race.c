// Signals that arrive at any time while masks are read and changed, and while the program forks.
// The program reads the masks that it has set, and no signal stays blocked. A child starts with its
// parent's mask and none of its signals.
#include "pthread_test.h"
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t seen;
static volatile int stop;
static pid_t self;
static pthread_t victim;

static void handler(int n) {
    (void)n;
    if (getpid() != self) _exit(99); // the parent's signal, in the child
    seen++;
}
static void *sender(void *arg) {
    unsigned r = (unsigned)t_env("SEED", 1);
    while (!stop) {
        OK(pthread_kill(victim, SIGUSR1));
        r = r * 1103515245 + 12345;
        for (volatile unsigned i = 0; i < r >> 20; i++) {}
    }
    return arg;
}
static void is_mask(int usr1, int usr2) {
    sigset_t now;
    OK(pthread_sigmask(SIG_BLOCK, NULL, &now));
    for (int n = 1; n < 32; n++)
        EQ(sigismember(&now, n), n == SIGUSR1 ? usr1 : n == SIGUSR2 ? usr2 : 0);
}

int main(void) {
    t_watchdog();
    self = getpid();
    victim = pthread_self();
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &a, NULL));
    SYS(sigaction(SIGALRM, &a, NULL));
    struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    SYS(setitimer(ITIMER_REAL, &every, NULL));
    pthread_t t = t_spawn(sender, NULL);
    sigset_t usr1, usr2, old;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    PHASE("masks");
    for (int i = 0; i < 20000; i++) {
        OK(pthread_sigmask(SIG_BLOCK, &usr2, &old));
        for (int n = 1; n < 32; n++) EQ(sigismember(&old, n), 0);
        is_mask(0, 1);
        if (i % 16 == 0) {
            OK(pthread_sigmask(SIG_BLOCK, &usr1, NULL));
            is_mask(1, 1);
        }
        OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
        is_mask(0, 0);
    }
    PHASE("fork");
    for (int i = 0; i < 300; i++) {
        OK(pthread_sigmask(SIG_BLOCK, &usr2, NULL));
        int status;
        pid_t child = fork();
        SYS(child);
        if (!child) {
            is_mask(0, 1);
            _exit(7);
        }
        while (waitpid(child, &status, 0) == -1) EQ(errno, EINTR);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child: %x", (unsigned)status);
        OK(pthread_sigmask(SIG_UNBLOCK, &usr2, NULL));
    }
    stop = 1;
    t_join(t);
    SYS(setitimer(ITIMER_REAL, &never, NULL));
    is_mask(0, 0);
    CHECK(seen > 100, "only %d signals", (int)seen);
    return t_ok("signal_mask_race");
}
