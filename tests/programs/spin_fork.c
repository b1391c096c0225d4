// fork, vfork and posix_spawn while threads spin. The child spins with threads of its own in the
// same loops, forks again and execs.
#include "spin_test.h"
#include <fcntl.h>
#include <spawn.h>
extern char **environ;

static volatile int stop;
static char inherited[16];
static int descriptors(void) { // count open descriptors except the standard ones
    int n = 0;
    for (int fd = 3; fd < 64; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
__attribute__((noinline)) static void wait_pause(volatile uint32_t *w, uint32_t value) {
    while (*w != value) __builtin_ia32_pause();
}
__attribute__((noinline)) static void wait_plain(volatile uint32_t *w, uint32_t value) {
    while (*w != value) {}
}
__attribute__((noinline, optimize("O0"))) static void wait_o0(volatile uint32_t *w,
                                                              uint32_t value) {
    while (*w != value) __builtin_ia32_pause();
}
static void (*const waits[])(volatile uint32_t *, uint32_t) = {wait_pause, wait_plain, wait_o0};

static void *member(void *arg) {
    int me = (int)(intptr_t)arg;
    for (uint32_t round = 1;; round++) {
        waits[(round + (uint32_t)me) % 3](&spin_cell[me].word, round);
        int more = spin_more(me, round);
        spin_pass(me, round);
        if (!more) return NULL;
    }
}
static void ring(int threads, int ms) {
    spin_threads = threads;
    spin_begin(ms);
    spin_until = t_now(CLOCK_MONOTONIC) + (int64_t)ms * 1000000;
    spin_start_token();
    t_run(threads, member);
}
static int ended(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) == -1) EQ(errno, EINTR);
    CHECK(WIFEXITED(status), "child's status %x", (unsigned)status);
    return WEXITSTATUS(status);
}
static void *forker(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; !stop || i < 3; i++) {
        pid_t pid;
        char *const args[] = {"/bin/true", NULL};
        switch ((me + i) % 4) {
        case 0:
            pid = fork();
            SYS(pid);
            if (!pid) {
                ring(4, 10);
                pid_t again = fork();
                SYS(again);
                if (!again) {
                    ring(3, 5);
                    _exit(5);
                }
                EQ(ended(again), 5);
                _exit(7);
            }
            EQ(ended(pid), 7);
            break;
        case 1:
            pid = fork();
            SYS(pid);
            if (!pid) {
                execv("/proc/self/exe", (char *const[]){"spin_fork", inherited, NULL});
                _exit(99);
            }
            EQ(ended(pid), 9);
            break;
        case 2:
            pid = vfork();
            if (!pid) {
                execv(args[0], args);
                _exit(98);
            }
            SYS(pid);
            EQ(ended(pid), 0);
            break;
        case 3:
            OK(posix_spawn(&pid, args[0], NULL, NULL, args, environ));
            EQ(ended(pid), 0);
            break;
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        EQ(descriptors(), atoi(argv[1])); // no descriptors but the inherited ones
        ring(4, 20);
        return 9;
    }
    t_watchdog();
    sprintf(inherited, "%d", descriptors());
    int threads = t_threads() > 64 ? 64 : t_threads();
    pthread_t f[2];
    int ms = (int)t_env("MS", 800);
    spin_threads = threads;
    spin_begin(ms);
    PHASE("forks");
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(member, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++) f[i] = t_spawn(forker, (void *)(intptr_t)i);
    spin_start_token();
    for (int i = 0; i < threads; i++) t_join(t[i]);
    stop = 1;
    PHASE("the last forks");
    for (int i = 0; i < 2; i++) t_join(f[i]);
    return t_ok("spin_fork");
}
