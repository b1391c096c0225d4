// setuid and similar calls change all threads (libc signals each by SIGSETXID), also those that
// wait, compute or sleep. Needs root.
#include "pthread_test.h"
#include <dirent.h>
#include <grp.h>

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int stop;
static volatile unsigned sink;

static void *other(void *arg) {
    int i = (int)(intptr_t)arg;
    switch (i % 4) {
    case 0:
        for (unsigned x = 1; !stop; x = x * 3 + 1) sink = x;
        break;
    case 1:
        while (!stop) t_sleep_us(300);
        break;
    case 2: pthread_barrier_wait(&barrier); break;
    case 3:
        OK(pthread_mutex_lock(&mutex));
        while (!stop) OK(pthread_cond_wait(&cond, &mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
    EQ(getuid(), 1234);
    EQ(geteuid(), 1234);
    EQ(getgid(), 4321);
    return arg;
}
// Check that every kernel thread of the process has these ids: a missed one would still be root.
static void check_all(int real, int effective, int saved, int gid) {
    DIR *d = opendir("/proc/self/task");
    CHECK(d, "opendir");
    int seen = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char path[64], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%.20s/status", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f) continue; // the thread has just ended
        while (fgets(line, sizeof line, f)) {
            int a, b, c, x;
            if (sscanf(line, "Uid: %d %d %d %d", &a, &b, &c, &x) == 4) {
                CHECK(a == real && b == effective && c == saved,
                      "thread %s has uids %d %d %d, expected %d %d %d", e->d_name, a, b, c, real,
                      effective, saved);
                seen++;
            }
            if (sscanf(line, "Gid: %d %d %d %d", &a, &b, &c, &x) == 4) EQ(b, gid);
        }
        fclose(f);
    }
    closedir(d);
    CHECK(seen > 1, "only %d threads seen", seen);
}
static void *from_thread(void *arg) {
    SYS(seteuid(0));
    return arg;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() < 4 ? 4 : t_threads(), on_barrier = 0;
    if (threads > 32) threads = 32;
    for (int i = 0; i < threads; i++) on_barrier += i % 4 == 2;
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)on_barrier + 1));
    pthread_t *t = calloc(1024, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(other, (void *)(intptr_t)i);
    t_sleep_ms(2);
    PHASE("setegid");
    gid_t groups[1] = {4321};
    SYS(setgroups(1, groups));
    SYS(setgid(4321));
    check_all(0, 0, 0, 4321);
    PHASE("seteuid");
    for (int i = 0; i < 3; i++) {
        SYS(seteuid(1234));
        check_all(0, 1234, 0, 4321);
        if (i & 1)
            t_run(1, from_thread);
        else
            SYS(seteuid(0));
        check_all(0, 0, 0, 4321);
    }
    PHASE("setuid");
    SYS(setuid(1234));
    ERR(setuid(0), EPERM);
    check_all(1234, 1234, 1234, 4321);
    PHASE("ending");
    OK(pthread_mutex_lock(&mutex));
    stop = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("process_setuid");
}
