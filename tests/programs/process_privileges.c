// Attributes that a thread sets by a raw system call belong to it and the threads that it creates:
// credentials, working directory after unshare, memory policy, personality, nice value,
// capabilities, gs base. Other threads never have them.
#include "pthread_test.h"
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mempolicy.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
    KINDS = 8,
    ORDINARY = 0,
    USER,
    FSUSER,
    FOLDER,
    POLICY,
    PERSONALITY,
    NICE,
    CAPABLE,
    OTHER = 1234
};
static pthread_barrier_t barrier, begin;
static int rounds, threads;
static char folder[64], barred[96], file[128]; // barred: for root only
static __thread long own_gs;
static __thread int64_t cpu_time;

static long call(long nr, long a, long b, long c) { return t_raw(nr, a, b, c, 0, 0); }
static unsigned capabilities(void) {
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2];
    EQ(call(SYS_capget, (long)&h, (long)d, 0), 0);
    return d[0].effective;
}
static void change(int kind) {
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{0, 0, 0}, {0, 0, 0}};
    unsigned long nodes = 1;
    switch (kind) {
    case USER: EQ(call(SYS_setresuid, -1, OTHER, -1), 0); break;
    case FSUSER: EQ(call(SYS_setfsuid, OTHER, 0, 0), 0); break;
    case FOLDER:
        SYS(unshare(CLONE_FS));
        SYS(chdir(folder));
        break;
    case POLICY: EQ(call(SYS_set_mempolicy, MPOL_PREFERRED, (long)&nodes, 64), 0); break;
    case PERSONALITY:
        CHECK(call(SYS_personality, ADDR_NO_RANDOMIZE, 0, 0) >= 0, "personality");
        break;
    case NICE: SYS(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1)); break;
    case CAPABLE: EQ(call(SYS_capset, (long)&h, (long)d, 0), 0); break;
    }
}
static int policy(void) {
    int mode = -1;
    EQ(call(SYS_get_mempolicy, (long)&mode, 0, 0), 0);
    return mode;
}
static int nice_value;
static unsigned all_capabilities;
// Use calls whose result does not depend on the kernel thread as long as no thread has changed
// itself.
static void look_anywhere(int kind) {
    char path[256];
    struct stat st;
    EQ(geteuid(), kind == USER ? OTHER : 0);
    int found = stat(file, &st);
    if (kind == USER || kind == FSUSER)
        CHECK(found == -1 && errno == EACCES, "looked up as another user");
    else if (kind != CAPABLE)
        SYS(found);
    int pair[2];
    SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    struct ucred peer;
    socklen_t size = sizeof peer;
    SYS(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &size));
    EQ(peer.uid, kind == USER ? OTHER : 0);
    close(pair[0]);
    close(pair[1]);
    CHECK(getcwd(path, sizeof path), "getcwd");
    CHECK(!strcmp(path, folder) == (kind == FOLDER), "in %s", path);
    EQ(policy(), kind == POLICY ? MPOL_PREFERRED : MPOL_DEFAULT);
    int64_t now = t_now(CLOCK_THREAD_CPUTIME_ID);
    CHECK(now >= cpu_time, "the thread's CPU time went back by %lld ns",
          (long long)(cpu_time - now));
    cpu_time = now;
}
static void look(int kind) {
    char path[256], link[64];
    uid_t r, e, s;
    struct stat self, mine;
    SYS(stat("/proc/thread-self/comm", &self)); // first: the calls below migrate the thread home
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
    SYS(stat(path, &mine));
    CHECK(self.st_ino == mine.st_ino, "/proc/thread-self/comm is another thread's");
    SYS(getresuid(&r, &e, &s));
    EQ(r, 0);
    EQ(e, kind == USER ? OTHER : 0);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (kind == USER || kind == FSUSER)
        CHECK(fd < 0 && errno == EACCES, "opened as another user: %d", fd);
    else if (kind != CAPABLE)
        SYS(fd);
    if (fd >= 0) close(fd);
    EQ(call(SYS_personality, 0xffffffff, 0, 0) & ADDR_NO_RANDOMIZE,
       kind == PERSONALITY ? ADDR_NO_RANDOMIZE : 0);
    EQ(getpriority(PRIO_PROCESS, 0), nice_value + (kind == NICE));
    if (kind != FSUSER) EQ(capabilities(), kind == CAPABLE || kind == USER ? 0 : all_capabilities);
    long n = readlink("/proc/thread-self", link, sizeof link - 1);
    SYS(n);
    link[n] = 0;
    snprintf(path, sizeof path, "%d/task/%d", getpid(), gettid());
    CHECK(!strcmp(link, path), "/proc/thread-self is %s", link);
    long gs;
    EQ(call(SYS_arch_prctl, ARCH_GET_GS, (long)&gs, 0), 0);
    EQ(gs, own_gs);
}
static void loop(int kind) {
    EQ(call(SYS_arch_prctl, ARCH_SET_GS, own_gs = (long)&own_gs, 0), 0);
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&barrier);
        look_anywhere(kind);
    }
    for (int i = 0; i < 5; i++) {
        pthread_barrier_wait(&barrier);
        look(kind);
    }
}
static void *child(void *arg) {
    loop((int)(intptr_t)arg);
    return NULL;
}
static void *work(void *arg) {
    int kind = (int)(intptr_t)arg;
    for (int i = 0; i < 200; i++) sched_yield(); // it may run on another carrier by now
    pthread_barrier_wait(&begin);
    change(kind);
    pthread_t t = t_spawn(child, arg);
    loop(kind);
    t_join(t);
    return NULL;
}

int main(void) {
    t_watchdog();
    CHECK(geteuid() == 0, "not root");
    all_capabilities = capabilities();
    nice_value = getpriority(PRIO_PROCESS, 0);
    snprintf(folder, sizeof folder, "/tmp/lissom-folder-%d", getpid());
    snprintf(barred, sizeof barred, "%s/barred", folder);
    snprintf(file, sizeof file, "%s/file", barred);
    SYS(mkdir(folder, 0711));
    SYS(mkdir(barred, 0700));
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    SYS(fd);
    close(fd);
    threads = t_threads() < 2 * KINDS ? 2 * KINDS : t_threads() > 64 ? 64 : t_threads();
    rounds = t_share(2000, threads);
    OK(pthread_barrier_init(&begin, NULL, (unsigned)threads));
    OK(pthread_barrier_init(&barrier, NULL, 2 * (unsigned)threads));
    pthread_t t[64];
    for (int i = 0; i < threads; i++)
        t[i] = t_spawn(work, (void *)(intptr_t)(i % 2 ? 0 : i / 2 % KINDS));
    for (int i = 0; i < threads; i++) t_join(t[i]);
    unlink(file);
    rmdir(barred);
    rmdir(folder);
    return t_ok("process_privileges");
}
