// A signal sent to a child right after its creation kills it, whatever the child is doing and
// however it was created.
#include "pthread_test.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROUNDS = 25, STACK = 65536 };

static const int signals[] = {SIGHUP,  SIGILL,  SIGTRAP, SIGBUS,  SIGFPE,
                              SIGSEGV, SIGUSR1, SIGTERM, SIGPROF, SIGSYS};
enum { SIGNALS = sizeof signals / sizeof *signals };

static int waits(void *arg) {
    for (;;) pause();
    return arg != NULL;
}

static pid_t make(int how, char *stack) {
    static char *const argv[] = {"sleep", "1000", NULL};
    extern char **environ;
    pid_t p;
    switch (how) {
    case 0:
        p = fork();
        if (p == 0) waits(NULL);
        return p;
    case 1: return clone(waits, stack + STACK, SIGCHLD, NULL);
    default: OK(posix_spawnp(&p, argv[0], NULL, NULL, argv, environ)); return p;
    }
}

static void *work(void *arg) {
    char *stack = malloc(STACK);
    for (int round = 0; round < ROUNDS; round++)
        for (int how = 0; how < 3; how++) {
            int sig = signals[(round + (int)(intptr_t)arg) % SIGNALS], status;
            pid_t p = make(how, stack);
            CHECK(p > 0, "no child: %s", strerror(errno));
            SYS(kill(p, sig));
            SYS(waitpid(p, &status, 0));
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig, "how %d, signal %d: status %x",
                  how, sig, status);
        }
    free(stack);
    return NULL;
}

int main(void) {
    t_watchdog();
    struct rlimit none = {0, 0};
    SYS(setrlimit(RLIMIT_CORE, &none));
    t_run(t_threads(), work);
    return t_ok("signal_new_child");
}
