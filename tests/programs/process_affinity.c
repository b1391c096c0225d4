// The program sets CPU affinity. If the runtime places threads on CPUs, sched_getaffinity must not
// show it, and new threads and processes must not inherit it. It must not undo what the program
// sets.
#include "pthread_test.h"
#include <spawn.h>

static cpu_set_t all, one;
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int rounds;
extern char **environ;

static void expect_set(const cpu_set_t *want, const char *who) {
    cpu_set_t set;
    CPU_ZERO(&set);
    SYS(sched_getaffinity(0, sizeof set, &set));
    CHECK(CPU_EQUAL(&set, want), "%s: %d CPUs, expected %d", who, CPU_COUNT(&set), CPU_COUNT(want));
    CPU_ZERO(&set);
    OK(pthread_getaffinity_np(pthread_self(), sizeof set, &set));
    CHECK(CPU_EQUAL(&set, want), "%s, pthread: %d CPUs", who, CPU_COUNT(&set));
}
static void *fresh(void *arg) {
    expect_set(arg, "new thread");
    return arg;
}
// Count the CPUs of a child as the kernel sees them: `Cpus_allowed_list` of its status.
static int count_list(const char *s) {
    int n = 0;
    while (*s && *s != '\n') {
        char *end;
        long a = strtol(s, &end, 10), b = a;
        if (end == s) break;
        if (*end == '-') b = strtol(end + 1, &end, 10);
        n += (int)(b - a + 1);
        s = *end == ',' ? end + 1 : end;
    }
    return n;
}
static int allowed_of(const char *path) {
    char line[4096];
    int n = -1;
    FILE *f = fopen(path, "r");
    CHECK(f, "%s", path);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, "Cpus_allowed_list:", 18))
            n = count_list(line + 18 + strspn(line + 18, " \t"));
    fclose(f);
    return n;
}
static void children(const cpu_set_t *want) {
    int pipes[2], status;
    SYS(pipe(pipes));
    pid_t pid = fork();
    SYS(pid);
    if (!pid) {
        expect_set(want, "child of fork");
        _exit(allowed_of("/proc/self/status") == CPU_COUNT(want) ? 0 : 3);
    }
    SYS(waitpid(pid, &status, 0));
    EQ(status, 0);
    char script[] = "while read a b; do case $a in Cpus_allowed_list:) echo $b;; esac; done "
                    "</proc/self/status >&$OUT";
    char out[16];
    snprintf(out, sizeof out, "OUT=%d", pipes[1]);
    char *argv[] = {"sh", "-c", script, NULL};
    char *envp[] = {out, NULL};
    OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, envp));
    SYS(waitpid(pid, &status, 0));
    EQ(status, 0);
    char text[256] = "";
    CHECK(read(pipes[0], text, sizeof text - 1) > 0, "nothing from the shell");
    EQ(count_list(text), CPU_COUNT(want));
    close(pipes[0]);
    close(pipes[1]);
}
static void *worker(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++) {
        int e = pthread_barrier_wait(&barrier);
        CHECK(!e || e == PTHREAD_BARRIER_SERIAL_THREAD, "barrier: %d", e);
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        if (i % 50 == me) {
            expect_set(&all, "worker");
            OK(pthread_join(t_spawn(fresh, &all), NULL));
            children(&all);
        }
    }
    if (me == 1) { // it has a mask of its own from now on
        SYS(sched_setaffinity(0, sizeof one, &one));
        OK(pthread_join(t_spawn(fresh, &one), NULL));
        children(&one);
    }
    for (int i = 0; i < rounds; i++) {
        int e = pthread_barrier_wait(&barrier);
        CHECK(!e || e == PTHREAD_BARRIER_SERIAL_THREAD, "barrier: %d", e);
        if (me == 1 && i % 50 == 0) {
            expect_set(&one, "after sched_setaffinity");
            char path[64];
            snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)syscall(SYS_gettid));
            EQ(allowed_of(path), 1);
        }
    }
    return NULL;
}
static volatile int stop;
static void *waits(void *arg) {
    while (!stop) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        t_sleep_us(200);
    }
    expect_set(&one, "set by another thread");
    return arg;
}
// Threads with a mask from their attributes, or set by another thread, take turns with threads
// without one.
static int cpu_of_one;
static int masked; // whether another thread has set the mask of the thread that gets &masked
static void expect_cpu(const char *who) {
    unsigned cpu;
    SYS(syscall(SYS_getcpu, &cpu, NULL, NULL));
    CHECK((int)cpu == cpu_of_one, "%s: on CPU %u, not on %d", who, cpu, cpu_of_one);
}
static void *stays(void *how) {
    for (int i = 0; i < rounds; i++) {
        int set = __atomic_load_n(&masked, __ATOMIC_ACQUIRE);
        int e = pthread_barrier_wait(&barrier);
        CHECK(!e || e == PTHREAD_BARRIER_SERIAL_THREAD, "barrier: %d", e);
        if (how == &one) expect_cpu("a mask from attributes");
        if (how == &masked && set) expect_cpu("a mask by another thread");
    }
    while (how == &masked && !__atomic_load_n(&masked, __ATOMIC_ACQUIRE)) t_sleep_us(200);
    return NULL;
}
static void stay(const pthread_attr_t *attr, int threads) {
    pthread_t t[threads];
    OK(pthread_barrier_destroy(&barrier));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++)
        OK(pthread_create(&t[i], i == 1 ? attr : NULL, stays,
                          i == 1 ? (void *)&one
                          : i    ? NULL
                                 : (void *)&masked));
    t_sleep_ms(5);
    OK(pthread_setaffinity_np(t[0], sizeof one, &one));
    __atomic_store_n(&masked, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < threads; i++) t_join(t[i]);
}

int main(void) {
    t_watchdog();
    CPU_ZERO(&all);
    CPU_ZERO(&one);
    SYS(sched_getaffinity(0, sizeof all, &all));
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all)) CPU_SET(cpu_of_one = i, &one);
    int threads = t_threads();
    rounds = t_share(6400, threads);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    t_run(threads, worker);
    PHASE("another thread's");
    pthread_t t = t_spawn(waits, NULL);
    t_sleep_ms(1);
    OK(pthread_setaffinity_np(t, sizeof one, &one));
    t_sleep_ms(1);
    stop = 1;
    t_join(t);
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setaffinity_np(&attr, sizeof one, &one));
    OK(pthread_create(&t, &attr, fresh, &one));
    t_join(t);
    PHASE("threads that stay where they are");
    stay(&attr, threads > 1 ? threads : 2);
    expect_set(&all, "main");
    children(&all);
    return t_ok("process_affinity");
}
