// Every way to end a process with threads keeps its exit code and runs exactly the right handlers:
// exit, _exit, quick_exit and return, from main or another thread, while the others wait, compute
// or hold locks.
#include "pthread_test.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile unsigned sink;
static int how, log_fd;

static void say(char c) {
    if (write(log_fd, &c, 1) != 1) _exit(99);
}
static void at1(void) { say('1'); }
static void at2(void) { say('2'); }
static void on(int code, void *arg) {
    say((char)('a' + code % 26));
    (void)arg;
}
static void quick(void) { say('q'); }
static void key_gone(void *v) {
    say('k');
    (void)v;
}
static void __attribute__((destructor)) destructor(void) {
    if (log_fd) say('d');
}

static void *other(void *arg) {
    int i = (int)(intptr_t)arg;
    if (i % 3 == 0)
        for (unsigned x = 1;; x = x * 3 + 1) sink = x;
    if (i % 3 == 1)
        for (;;) pause();
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&cond, &mutex);
    return NULL;
}
static void end(void) {
    switch (how) {
    case 0: exit(41);
    case 1: _exit(42);
    case 2: quick_exit(43);
    case 3: syscall(SYS_exit_group, 44);
    }
}
static void *ender(void *arg) {
    end();
    return arg;
}
static int child(int from_main, int threads) {
    pthread_key_t key;
    OK(atexit(at1));
    OK(atexit(at2));
    OK(on_exit(on, NULL));
    OK(at_quick_exit(quick));
    OK(pthread_key_create(&key, key_gone));
    OK(pthread_setspecific(key, &key)); // a key's destructor must not run at exit
    for (int i = 0; i < threads; i++) t_spawn(other, (void *)(intptr_t)i);
    if (how == 4) return 45; // return from main
    if (from_main) end();
    t_join(t_spawn(ender, NULL));
    _exit(98);
}

int main(void) {
    t_watchdog();
    int threads = t_threads() < 32 ? t_threads() : 32; // a third of them computes until the end
    static const char *const want[] = {"p21d", "", "q", "", "t21d"}; // 41 -> 'p', 45 -> 't'
    for (how = 0; how < 5; how++)
        for (int from_main = 0; from_main < 2; from_main++) {
            PHASE("a child ends");
            int fds[2];
            SYS(pipe(fds));
            pid_t pid = fork();
            SYS(pid);
            if (!pid) {
                close(fds[0]);
                log_fd = fds[1];
                return child(from_main, threads);
            }
            close(fds[1]);
            char log[32] = "";
            size_t n = 0;
            for (ssize_t r; n < 31 && (r = read(fds[0], log + n, 31 - n)) > 0;) n += (size_t)r;
            close(fds[0]);
            int status;
            SYS(waitpid(pid, &status, 0));
            CHECK(WIFEXITED(status), "way %d: status %x", how, (unsigned)status);
            EQ(WEXITSTATUS(status), 41 + how);
            CHECK(!strcmp(log, want[how]), "way %d: handlers '%s', expected '%s'", how, log,
                  want[how]);
        }
    return t_ok("process_exit");
}
