// posix_spawn, vfork, system, popen and fork+exec from several threads at once. Exit codes and
// output arrive, the environment is passed on, and the child runs with the signal mask it was
// given.
#include "pthread_test.h"
#include <signal.h>
#include <spawn.h>

extern char **environ;

static int status_of(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) == -1) EQ(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    char command[64], other[64], line[64] = "", want[64];
    snprintf(command, sizeof command, "exit %d", me % 100 + 1);
    char *argv[] = {"sh", "-c", command, NULL};
    pid_t pid;
    OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
    EQ(status_of(pid), me % 100 + 1);
    EQ(posix_spawn(&pid, "/nowhere/nothing", NULL, NULL, argv, environ), ENOENT);
    pid = vfork();
    SYS(pid);
    if (!pid) {
        execv("/bin/sh", argv);
        _exit(127);
    }
    EQ(status_of(pid), me % 100 + 1);
    if (me % 2 == 0) {
        int r = system(command);
        EQ(WEXITSTATUS(r), me % 100 + 1);
    } else {
        snprintf(other, sizeof other, "echo $MARK %d; exit 3", me);
        FILE *f = popen(other, "r");
        CHECK(f && fgets(line, sizeof line, f), "popen");
        snprintf(want, sizeof want, "mark %d\n", me);
        CHECK(!strcmp(line, want), "popen gave '%s', expected '%s'", line, want);
        EQ(WEXITSTATUS(pclose(f)), 3);
    }
    pid = fork();
    SYS(pid);
    if (!pid) {
        execv("/bin/sh", argv);
        _exit(127);
    }
    EQ(status_of(pid), me % 100 + 1);
    return NULL;
}
// exec inherits the mask of this thread: sh -c 'kill -TERM $$' survives only if TERM is blocked.
static void *masked(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    char *argv[] = {"sh", "-c", "kill -TERM $$; exit 5", NULL};
    pid_t pid;
    OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
    EQ(status_of(pid), 5);
    posix_spawnattr_t a;
    OK(posix_spawnattr_init(&a));
    sigemptyset(&set);
    OK(posix_spawnattr_setsigmask(&a, &set));
    OK(posix_spawnattr_setflags(&a, POSIX_SPAWN_SETSIGMASK));
    OK(posix_spawn(&pid, "/bin/sh", NULL, &a, argv, environ));
    EQ(status_of(pid), 1000 + SIGTERM);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() < 16 ? t_threads() : 16; // each runs four shells
    SYS(setenv("MARK", "mark", 1));
    PHASE("threads spawn");
    t_run(threads, work);
    PHASE("masks");
    t_run(2, masked);
    return t_ok("process_spawn");
}
