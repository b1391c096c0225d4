// Resource limits: 10,000 threads with small stacks, RLIMIT_AS, RLIMIT_NPROC and pids.max. At the
// limit pthread_create returns EAGAIN, and existing threads continue. It works again after a thread
// has ended. Argument: "many", "memory", "nproc" (as root it changes to a user whom the limit
// binds) or "pids" (needs permission to create a cgroup).
#include "pthread_test.h"
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, in = PTHREAD_COND_INITIALIZER;
static int go, arrived;
static pthread_t t[10000];

static void *waits(void *arg) {
    OK(pthread_mutex_lock(&mutex));
    arrived++;
    OK(pthread_cond_signal(&in));
    while (!go) OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return arg;
}
// Create up to n waiting threads. Returns the number created.
static int create(int n) {
    pthread_attr_t a;
    OK(pthread_attr_init(&a));
    OK(pthread_attr_setstacksize(&a, 32768));
    OK(pthread_attr_setguardsize(&a, 0));
    go = arrived = 0;
    int made = 0, r = 0;
    for (; made < n; made++)
        if ((r = pthread_create(&t[made], &a, waits, (void *)(intptr_t)made))) break;
    if (r) EQ(r, EAGAIN);
    OK(pthread_mutex_lock(&mutex));
    while (arrived < made) OK(pthread_cond_wait(&in, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return made;
}
static void release(int made) {
    OK(pthread_mutex_lock(&mutex));
    go = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < made; i++) EQ((long)t_join(t[i]), i);
}

static void write_to(const char *folder, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s: %s", path, strerror(errno));
}
static void thrice(int least, int most) {
    for (int round = 0; round < 3; round++) {
        int made = create(100);
        // A runtime may need some threads of its own, and a process that has just ended may still
        // be counted.
        CHECK(made >= least && made <= most, "%d threads, expected %d to %d", made, least, most);
        ERR(fork(), EAGAIN);
        release(made);
        // The kernel counts a thread for a short while after join.
        for (int i = 0; i < 100 && round < 2; i++) t_sleep_us(200);
    }
}
// Remove the cgroup after all its processes have ended: a child outlives the program.
static void pids(void) {
    static const char *const mounts[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"};
    char folder[128];
    int at = 0;
    for (; at < 2; at++) {
        snprintf(folder, sizeof folder, "%s/lissom-test-%d", mounts[at], getpid());
        char limit[160];
        if (mkdir(folder, 0755)) continue;
        snprintf(limit, sizeof limit, "%s/pids.max", folder);
        if (!access(limit, W_OK)) break;
        rmdir(folder);
    }
    CHECK(at < 2, "no pids cgroup can be made");
    int status;
    pid_t child = fork();
    SYS(child);
    if (!child) {
        write_to(folder, "pids.max", "40\n");
        write_to(folder, "cgroup.procs", "0\n");
        thrice(30, 39);
        _exit(0);
    }
    SYS(waitpid(child, &status, 0));
    for (int i = 0; i < 1000 && rmdir(folder) && errno == EBUSY; i++) t_sleep_ms(1);
    EQ(status, 0);
}
// Create threads until their stacks fill the address space. A runtime runs out of memory for them
// long before.
static void memory(void) {
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f, "/proc/self/status");
    while (fgets(line, sizeof line, f) && sscanf(line, "VmSize: %lu", &kib) != 1) {}
    fclose(f);
    struct rlimit limit = {(kib + 6 * 1024) * 1024, RLIM_INFINITY};
    SYS(setrlimit(RLIMIT_AS, &limit));
    for (int round = 0; round < 3; round++) {
        int made = create(1000);
        CHECK(made >= 40 && made < 1000, "%d threads", made);
        release(made);
    }
}

int main(int argc, char **argv) {
    t_watchdog();
    if (argc == 2 && !strcmp(argv[1], "memory")) {
        memory();
        return t_ok("process_limits memory");
    }
    if (argc == 2 && !strcmp(argv[1], "many")) {
        for (int round = 0; round < 2; round++) {
            PHASE("many threads");
            int made = create(10000);
            CHECK(made >= 50, "only %d threads", made);
            release(made);
        }
        return t_ok("process_limits many");
    }
    if (argc == 2 && !strcmp(argv[1], "pids")) {
        PHASE("pids.max");
        pids();
        return t_ok("process_limits pids");
    }
    CHECK(argc == 2 && !strcmp(argv[1], "nproc"), "usage: process_limits many|nproc|pids|memory");
    struct rlimit limit = {40, 40};
    PHASE("RLIMIT_NPROC");
    if (getuid() == 0) {
        uid_t uid = 60000 + (uid_t)(getpid() % 5000); // a user without other processes
        SYS(setgroups(0, NULL));
        SYS(setgid(uid));
        SYS(setuid(uid));
    }
    SYS(setrlimit(RLIMIT_NPROC, &limit));
    thrice(30, 39);
    return t_ok("process_limits nproc");
}
