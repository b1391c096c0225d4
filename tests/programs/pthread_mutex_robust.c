// Robust mutexes: when the owner dies, the kernel marks the word and wakes one waiter.
#include "pthread_test.h"

static pthread_mutex_t *mutex;
static long *counter;
static int rounds;

static void init(int shared, int protocol) {
    pthread_mutexattr_t a;
    OK(pthread_mutexattr_init(&a));
    OK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutexattr_setpshared(&a, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
    OK(pthread_mutexattr_setprotocol(&a, protocol));
    OK(pthread_mutex_init(mutex, &a));
    *counter = 0;
}

// Every thread dies with the mutex held; its successor repairs it.
static void *die_holding(void *arg) {
    int r = pthread_mutex_lock(mutex);
    if (r == EOWNERDEAD)
        OK(pthread_mutex_consistent(mutex));
    else
        OK(r);
    ++*counter;
    return arg;
}

static void *count(void *arg) {
    for (int i = 0; i < rounds; i++) {
        OK(pthread_mutex_lock(mutex));
        ++*counter;
        OK(pthread_mutex_unlock(mutex));
    }
    return arg;
}

// Called by one thread at a time: natively, glibc 2.36 does not wake waiters of an unrecoverable
// mutex (its lll_unlock takes FUTEX_WAITERS for a negative number). No trylock, which would leave
// the word locked.
static void *give_up(void *arg) {
    EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
    OK(pthread_mutex_unlock(mutex));
    return arg;
}
static void *not_recoverable(void *arg) {
    EQ(pthread_mutex_lock(mutex), ENOTRECOVERABLE);
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "mmap");
    mutex = (pthread_mutex_t *)page;
    counter = (long *)(page + 2048);
    rounds = t_share(20000, threads);
    for (int protocol = 0; protocol < 2; protocol++) {
        for (int shared = 0; shared < 2; shared++) {
            PHASE("counter");
            init(shared, protocol ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
            t_run(threads, count);
            EQ(*counter, (long)threads * rounds);
            PHASE("chain of dying owners");
            *counter = 0;
            t_run(threads, die_holding);
            EQ(*counter, threads);
            PHASE("owner dead seen by main");
            EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
            OK(pthread_mutex_consistent(mutex));
            OK(pthread_mutex_unlock(mutex));
            OK(pthread_mutex_lock(mutex));
            OK(pthread_mutex_unlock(mutex));
            PHASE("not recoverable");
            *counter = 0;
            t_run(1, die_holding);
            t_run(1, give_up);
            for (int i = 0; i < 4; i++) t_run(1, not_recoverable);
            OK(pthread_mutex_destroy(mutex));
        }
        PHASE("owner is a process that dies");
        init(1, protocol ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        for (int i = 0; i < 4; i++) {
            pid_t pid = fork();
            SYS(pid);
            if (!pid) {
                int r = pthread_mutex_lock(mutex);
                if (r == EOWNERDEAD) r = pthread_mutex_consistent(mutex);
                _exit(r ? 3 : 0);
            }
            int status;
            SYS(waitpid(pid, &status, 0));
            EQ(status, 0);
        }
        EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
        OK(pthread_mutex_consistent(mutex));
        OK(pthread_mutex_unlock(mutex));
    }
    return t_ok("pthread_mutex_robust");
}
