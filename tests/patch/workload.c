/* SPDX-License-Identifier: MIT
 *
 * A program that uses much of libc. It must behave the same on patched code.
 *
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define MUST(e) \
    do { \
        if (!(e)) { \
            fprintf(stderr, "workload: %s (errno %d) at %d\n", #e, errno, __LINE__); \
            exit(1); \
        } \
    } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long counter;
static int turn;

static void *worker(void *arg) {
    long id = (long)arg;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
        free(malloc((size_t)(i * 37 % 200000)));
    }
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    while (turn != id) pthread_cond_wait(&cond, &mutex);
    turn++;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void threads(void) {
    enum { N = 16 };
    pthread_t t[N];
    pthread_barrier_init(&barrier, NULL, N);
    for (long i = 0; i < N; i++) MUST(pthread_create(&t[i], NULL, worker, (void *)i) == 0);
    for (long i = 0; i < N; i++) {
        void *r;
        MUST(pthread_join(t[i], &r) == 0 && r == (void *)i);
    }
    MUST(counter == N * 2000 && turn == N);
}

static void unlock(void *done) { *(int *)done = 1; }
static void *sleeper(void *done) {
    pthread_cleanup_push(unlock, done);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}
static void *reader(void *arg) {
    char c;
    int *fd = arg;
    for (;;)
        if (read(*fd, &c, 1) < 0) return NULL;
}

static void cancel(void) {
    pthread_t t;
    void *r;
    int done = 0, fd[2];
    MUST(pthread_create(&t, NULL, sleeper, &done) == 0);
    usleep(2000);
    MUST(pthread_cancel(t) == 0 && pthread_join(t, &r) == 0 && r == PTHREAD_CANCELED && done);
    MUST(pipe(fd) == 0 && pthread_create(&t, NULL, reader, fd) == 0);
    usleep(2000);
    MUST(pthread_cancel(t) == 0 && pthread_join(t, &r) == 0 && r == PTHREAD_CANCELED);
    close(fd[0]);
    close(fd[1]);
}

static void processes(void) {
    int fd[2], status;
    char buf[64] = "";
    MUST(pipe(fd) == 0);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        dup2(fd[1], 1);
        execl("/bin/echo", "echo", "hello", NULL);
        _exit(127);
    }
    close(fd[1]);
    MUST(read(fd[0], buf, sizeof buf - 1) == 6 && !strcmp(buf, "hello\n"));
    close(fd[0]);
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    char *argv[] = {"true", NULL};
    MUST(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0);
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    MUST((pid = vfork()) >= 0);
    if (pid == 0) _exit(7);
    MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    FILE *p = popen("printf 'a b c' | wc -w", "r");
    int n = 0;
    MUST(p && fscanf(p, "%d", &n) == 1 && n == 3 && pclose(p) == 0);
    MUST(system("exit 3") == 3 << 8);
}

static void files(void) {
    char path[] = "/tmp/lissom-workload-XXXXXX", line[64];
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w+");
    MUST(f);
    for (int i = 0; i < 10000; i++) fprintf(f, "line %d\n", i);
    rewind(f);
    for (int i = 0; i < 10000; i++) MUST(fgets(line, sizeof line, f) && atoi(line + 5) == i);
    fclose(f);
    unlink(path);
    MUST(open("/nonexistent/file", O_RDONLY) == -1 && errno == ENOENT);
    MUST(read(-1, line, 1) == -1 && errno == EBADF);
    int s[2], ep = epoll_create1(0);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
    struct epoll_event ev = {.events = EPOLLIN};
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, s[0], &ev) == 0 && epoll_wait(ep, &ev, 1, 0) == 0);
    MUST(send(s[1], "x", 1, 0) == 1 && epoll_wait(ep, &ev, 1, 1000) == 1 &&
         recv(s[0], line, 1, 0) == 1);
    struct pollfd pf = {.fd = s[0], .events = POLLIN};
    MUST(poll(&pf, 1, 1) == 0);
    close(s[0]);
    close(s[1]);
    close(ep);
    void *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(m != MAP_FAILED && (m = mremap(m, 1 << 20, 2 << 20, MREMAP_MAYMOVE)) != MAP_FAILED &&
         munmap(m, 2 << 20) == 0);
}

static jmp_buf back;
static sigjmp_buf sigback;
static volatile sig_atomic_t alarms;
static volatile int *volatile nowhere;
static void on_alarm(int sig) {
    (void)sig;
    alarms++;
}
static void on_segv(int sig) {
    (void)sig;
    siglongjmp(sigback, 5);
}
static void jump(int n) { longjmp(back, n); }
static void (*volatile deep)(int) = jump;

static void signals(void) {
    struct sigaction sa = {.sa_handler = on_alarm};
    struct timespec left = {0, 0};
    int r = setjmp(back);
    if (r == 0) deep(9);
    MUST(r == 9);
    signal(SIGSEGV, on_segv);
    for (volatile int i = 0; i < 100; i++)
        if (sigsetjmp(sigback, 1) == 0) *nowhere = 0;
    sigaction(SIGALRM, &sa, NULL);
    /* calls interrupted by the signal, then calls restarted by the kernel */
    struct itimerspec every = {{0, 300000}, {0, 300000}};
    struct sigevent se = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    MUST(timer_create(CLOCK_MONOTONIC, &se, &timer) == 0 &&
         timer_settime(timer, 0, &every, NULL) == 0);
    struct timespec pause_for = {0, 20000000};
    int interrupted = 0;
    while (nanosleep(&pause_for, &left) < 0 && errno == EINTR) {
        interrupted++;
        pause_for = left;
    }
    MUST(interrupted > 0);
    sa.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &sa, NULL);
    int fd[2];
    MUST(pipe(fd) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        usleep(20000);
        _exit(write(fd[1], "y", 1) != 1);
    }
    char c = 0;
    MUST(read(fd[0], &c, 1) == 1 && c == 'y');
    int status;
    while (waitpid(pid, &status, 0) < 0) MUST(errno == EINTR);
    for (int i = 0; i < 20000; i++) MUST(getppid() > 0);
    timer_delete(timer);
    MUST(alarms > 0);
    sem_t sem;
    sem_init(&sem, 0, 0);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = (soon.tv_nsec + 1000000) % 1000000000;
    MUST(sem_timedwait(&sem, &soon) == -1 && (errno == ETIMEDOUT || errno == EINTR));
    close(fd[0]);
    close(fd[1]);
}

static void libraries(void) {
    static const char *const names[] = {"libm.so.6", "libgomp.so.1", "librt.so.1",
                                        "libresolv.so.2"};
    for (int round = 0; round < 5; round++)
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
            void *h = dlopen(names[i], RTLD_NOW);
            if (h) dlclose(h);
        }
    void *h = dlopen("libm.so.6", RTLD_LAZY);
    double (*cosine)(double) = h ? (double (*)(double))dlsym(h, "cos") : NULL;
    MUST(cosine && cosine(0) == 1.0);
}

int main(void) {
    setenv("LD_PRELOAD", "", 1); /* do not preload into the children */
    threads();
    cancel();
    processes();
    files();
    signals();
    libraries();
    printf("workload done\n");
    return 0;
}
