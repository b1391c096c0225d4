// exec in a program with blocked and computing threads, from main and from another thread. The
// other threads disappear; the pid stays. The new program has one thread and inherits the pipe and
// the signal mask. Runs itself as the new program.
#include "pthread_test.h"
#include <dirent.h>
#include <signal.h>

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static char pid_text[16], self[PATH_MAX];
static volatile unsigned sink;

static void *other(void *arg) {
    int i = (int)(intptr_t)arg;
    if (i % 4 == 0)
        for (unsigned x = 1;; x = x * 3 + 1) sink = x;
    if (i % 4 == 1)
        for (;;) pthread_barrier_wait(&barrier);
    if (i % 4 == 2)
        for (;;) pause();
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&cond, &mutex);
    return NULL;
}
static void *execs(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    t_sleep_ms(2);
    ERR(execl("/nowhere/nothing", "nothing", NULL), ENOENT);
    execl(self, self, "--after-exec", pid_text, NULL);
    FAIL("execl: %s", strerror(errno));
    return arg;
}
static void *in_new_program(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}
static void after_exec(const char *pid) {
    EQ(getpid(), atoi(pid));
    EQ(syscall(SYS_gettid), getpid());
    int tasks = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d, "opendir");
    for (struct dirent *e; (e = readdir(d));) tasks += e->d_name[0] != '.';
    closedir(d);
    // A runtime may have a helper thread; the threads of the old program must be gone.
    CHECK(tasks <= 8, "%d threads after exec", tasks);
    sigset_t now;
    OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
    EQ(sigismember(&now, SIGUSR2), 1);
    EQ(sigismember(&now, SIGUSR1), 0);
    t_run(4, in_new_program);
    _exit(23);
}

int main(int argc, char **argv) {
    if (argc == 3) after_exec(argv[2]);
    t_watchdog();
    int threads = t_threads();
    if (threads < 9) threads = 9; // more than after_exec tolerates
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0, "readlink");
    for (int from_main = 0; from_main < 2; from_main++)
        for (int round = 0; round < 4; round++) {
            PHASE("a child execs");
            pid_t pid = fork();
            SYS(pid);
            if (!pid) {
                OK(pthread_barrier_init(&barrier, NULL, 2));
                snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
                for (int i = 0; i < threads; i++) t_spawn(other, (void *)(intptr_t)i);
                if (from_main) execs(NULL);
                t_join(t_spawn(execs, NULL));
                _exit(1);
            }
            int status;
            SYS(waitpid(pid, &status, 0));
            CHECK(WIFEXITED(status), "status %x", (unsigned)status);
            EQ(WEXITSTATUS(status), 23);
        }
    return t_ok("process_exec");
}
