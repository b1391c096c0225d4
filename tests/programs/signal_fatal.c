// Children that die of a signal while their other threads block or compute: abort, a wild pointer,
// kill, raise, an illegal instruction. The status is the signal's. In a handler, si_addr and the
// instruction pointer are right.
#include "pthread_test.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucontext.h>

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int how;
static volatile int *volatile wild = (int *)0x12340;
extern char __executable_start[], etext[];

static void die(void) {
    switch (how) {
    case 0: abort();
    case 1: *wild = 1; break;
    case 2: raise(SIGTERM); break;
    case 3: kill(getpid(), SIGKILL); break;
    case 4: __asm__ volatile("ud2"); break;
    case 5: *(volatile int *)0x8000000000000000 = 1; break; // not canonical
    case 6: pthread_kill(pthread_self(), SIGINT); break;
    }
    for (;;) pause();
}
static const int statuses[] = {SIGABRT, SIGSEGV, SIGTERM, SIGKILL, SIGILL, SIGSEGV, SIGINT};

static void *other(void *arg) {
    int i = (int)(intptr_t)arg;
    if (i % 3 == 0)
        for (;;) pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&cond, &mutex);
    return NULL;
}
static void *killer(void *arg) {
    die();
    return arg;
}

static __thread sigjmp_buf env;
static void segv(int sig, siginfo_t *si, void *c) {
    ucontext_t *uc = c;
    EQ(sig, SIGSEGV);
    CHECK(si->si_addr == (void *)wild, "si_addr %p, expected %p", si->si_addr, (void *)wild);
    char *ip = (char *)uc->uc_mcontext.gregs[REG_RIP];
    CHECK(ip >= __executable_start && ip < etext, "rip %p outside of the program %p-%p", ip,
          (void *)__executable_start, (void *)etext);
    siglongjmp(env, 1);
}
static void *survives(void *arg) {
    for (volatile int i = 0; i < 20; i++) {
        if (sigsetjmp(env, 1) == 0) {
            *wild = 1;
            FAIL("wrote to a wild pointer");
        }
        pthread_barrier_wait(&barrier);
    }
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    struct rlimit no_core = {0, 0};
    SYS(setrlimit(RLIMIT_CORE, &no_core));
    for (how = 0; how < 7; how++) {
        for (int from_main = 0; from_main < 2; from_main++) {
            PHASE("a child dies");
            pid_t pid = fork();
            SYS(pid);
            if (!pid) {
                signal(SIGINT, SIG_DFL); // ignored if a shell runs this in the background
                OK(pthread_barrier_init(&barrier, NULL, 2));
                for (int i = 0; i < threads / 2 + 2; i++) t_spawn(other, (void *)(intptr_t)i);
                if (from_main) die();
                t_join(t_spawn(killer, NULL));
                _exit(0);
            }
            int status;
            SYS(waitpid(pid, &status, 0));
            CHECK(WIFSIGNALED(status), "kind %d: status %x", how, (unsigned)status);
            EQ(WTERMSIG(status), statuses[how]);
        }
    }
    PHASE("handlers");
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    struct sigaction sa = {.sa_sigaction = segv, .sa_flags = SA_SIGINFO};
    SYS(sigaction(SIGSEGV, &sa, NULL));
    t_run(threads, survives);
    return t_ok("signal_fatal");
}
