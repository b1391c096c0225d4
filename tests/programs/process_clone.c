// Child processes that share memory with their parent: without thread-local storage of their own,
// with the same signal handlers, and while other threads wait for each other.
#include "pthread_test.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { STACK = 65536, ROUNDS = 40 };
static pthread_barrier_t barrier;
static atomic_int stop, handled;
static uint32_t word;

static void handler(int sig) {
    (void)sig;
    atomic_fetch_add(&handled, 1);
}
static void *meet(void *arg) {
    static volatile int ends;
    do {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ends = stop;
        pthread_barrier_wait(&barrier);
    } while (!ends);
    return arg;
}
// Use no errno and no locks: the child has its parent's thread-local storage.
static int child(void *arg) {
    int *fd = arg;
    char c = 'x';
    for (int i = 0; i < 50; i++) t_raw(SYS_sched_yield, 0, 0, 0, 0, 0);
    t_raw(SYS_kill, t_raw(SYS_getpid, 0, 0, 0, 0, 0), SIGUSR1, 0, 0, 0);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    t_raw(SYS_futex, (long)&word, 1, 1, 0, 0);
    if (t_raw(SYS_write, fd[1], (long)&c, 1, 0, 0) != 1) return 3;
    return 7;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() > 64 ? 64 : t_threads(), fd[2], status;
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &a, NULL));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    pthread_t t[64];
    for (int i = 0; i < threads; i++) t[i] = t_spawn(meet, NULL);
    SYS(pipe(fd));
    char *stack = malloc(STACK), c;
    for (int i = 0; i < ROUNDS; i++) {
        word = 0;
        pid_t pid = clone(child, stack + STACK,
                          CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_FILES | SIGCHLD, fd);
        SYS(pid);
        while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) t_raw(SYS_futex, (long)&word, 0, 0, 0, 0);
        EQ(read(fd[0], &c, 1), 1);
        EQ(c, 'x');
        EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x", (unsigned)status);
    }
    EQ(handled, ROUNDS);
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("process_clone");
}
