/* SPDX-License-Identifier: MIT */
// omp_targets COMMAND...: run COMMAND with a manager (runtime/abi.h, struct lissom_program) that
// gives each connected program another target every millisecond: 1 to CPUs + 2 for a while, and
// sometimes nonsense. Exits as COMMAND does. Under lissom, it fails if no program's number of slots
// has changed, unless COMMAND was short.
#include "pthread_test.h"
#include "../../runtime/abi.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MOST = 512 };

static struct connection {
    int socket;
    struct lissom_program *page;
    uint32_t slots;     // last seen
    uint64_t heartbeat; // last seen
} connection[MOST];
static int connections, in_all;
static long changes, writes, looks; // changes of slots, targets written, heartbeats seen
static uint32_t limit;              // reported by the program with the latest heartbeat
static uint64_t seed;

static int listening(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof a.sun_path);
    strcpy(a.sun_path, path);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    SYS(s);
    SYS(bind(s, (struct sockaddr *)&a, sizeof a));
    SYS(listen(s, 100));
    return s;
}

// Create and send a page, as crates/lissom/src/manager/server.rs does.
static struct lissom_program *hand_over(int socket) {
    int fd = memfd_create("lissom-program", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    SYS(fd);
    SYS(ftruncate(fd, LISSOM_PROGRAM_BYTES));
    SYS(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    struct lissom_program *p =
        mmap(NULL, LISSOM_PROGRAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    p->version = LISSOM_PROGRAM_VERSION;
    p->magic = LISSOM_PROGRAM_MAGIC;
    uint64_t hello = LISSOM_PROGRAM_MAGIC;
    struct iovec v = {&hello, sizeof hello};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (sendmsg(socket, &m, MSG_NOSIGNAL) < 0) EQ(errno, EPIPE);
    close(fd);
    return p;
}

static void admit(int listener) {
    int s;
    while (connections < MOST &&
           (s = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        connection[connections++] = (struct connection){.socket = s, .page = hand_over(s)};
        in_all++;
    }
}

static void forget_closed(void) {
    for (int i = connections - 1; i >= 0; i--) {
        struct pollfd p = {.fd = connection[i].socket};
        if (poll(&p, 1, 0) == 0) continue;
        close(connection[i].socket);
        munmap(connection[i].page, LISSOM_PROGRAM_BYTES);
        connection[i] = connection[--connections];
    }
}

static uint64_t target(int cpus) {
    uint64_t now = (uint64_t)t_now(CLOCK_MONOTONIC) / 1000000,
             threads = 1 + t_rand(&seed) % (unsigned)(cpus + 2);
    switch (t_rand(&seed) % 64) {
    case 0: return (now - t_rand(&seed) % 1000) << 16 | threads;   // expired
    case 1: return (now + 100000 + t_rand(&seed)) << 16 | threads; // expires too late
    case 2: return (now + 100) << 16;                              // 0 threads
    case 3: return (now + 100) << 16 | 0xffff;
    case 4: return threads;
    case 5: return (uint64_t)t_rand(&seed) << 33 ^ (uint64_t)t_rand(&seed) << 16 ^ t_rand(&seed);
    default: return (now + 2 + t_rand(&seed) % 200) << 16 | threads;
    }
}

static void rewrite(struct connection *c, int cpus) {
    uint32_t slots = __atomic_load_n(&c->page->slots, __ATOMIC_RELAXED);
    changes += slots && c->slots && slots != c->slots;
    c->slots = slots;
    uint64_t heartbeat = __atomic_load_n(&c->page->heartbeat, __ATOMIC_RELAXED);
    if (heartbeat != c->heartbeat) {
        looks++;
        limit = __atomic_load_n(&c->page->limit, __ATOMIC_RELAXED);
    }
    c->heartbeat = heartbeat;
    __atomic_store_n(&c->page->target, target(cpus), __ATOMIC_RELAXED);
    writes++;
}

static int cpus_of_all(void) {
    cpu_set_t set;
    SYS(sched_getaffinity(0, sizeof set, &set));
    return CPU_COUNT(&set);
}

static int is_under_lissom(void) {
    const char *level = getenv("LEVEL");
    return level && (!strcmp(level, "kernel") || !strcmp(level, "user") || !strcmp(level, "auto"));
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    t_watchdog();
    seed = t_seed();
    int cpus = cpus_of_all(), status;
    // Not in the current folder: its path may be too long for a socket.
    char folder[] = "/tmp/lissom-omp-XXXXXX", path[64];
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    setenv(LISSOM_ENV_MANAGER, path, 1);
    int listener = listening(path);
    pid_t parent = getpid(), child = fork();
    SYS(child);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) execvp(argv[1], argv + 1);
        FAIL("%s: %s", argv[1], strerror(errno));
    }
    while (!waitpid(child, &status, WNOHANG)) {
        admit(listener);
        for (int i = 0; i < connections; i++) rewrite(&connection[i], cpus);
        t_sleep_ms(1);
        forget_closed();
    }
    unlink(path);
    rmdir(folder);
    fprintf(stderr, "%d programs, %ld targets, %ld looks, %ld changes of slots, of %u at most\n",
            in_all, writes, looks, changes, limit);
    if (WIFSIGNALED(status)) FAIL("%s: signal %d", argv[1], WTERMSIG(status));
    if (!WEXITSTATUS(status) && is_under_lissom() && cpus > 1 && writes > 200)
        CHECK(changes > 0, "%d programs, %ld targets", in_all, writes);
    return WEXITSTATUS(status);
}
