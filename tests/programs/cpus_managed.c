/* SPDX-License-Identifier: MIT */
// cpus_managed LISSOM: `LISSOM manager` divides the CPUs between two processes of many threads
// under lissom and one that effectively runs natively (it has one thread). Slots must follow the
// manager's targets. The manager is killed and stopped, another program takes its place and sends
// nonsense, and a process's page is overwritten. All processes must then keep working, with all
// CPUs.
#include "cpus_change.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { WORKERS = 2, HOG = WORKERS };

static int lissom;
static char folder[64], socket_path[96];

// --- the processes -------------------------------------------------------------------------------

static pid_t begin_hog(void) {
    pid_t child = fork();
    SYS(child);
    if (child) return child;
    c_as_user();
    while (!atomic_load(&c_shared->over)) {
        c_gate_pass(&c_shared->gate[HOG]);
        compute(1000);
    }
    _exit(0);
}

static void go_on(void) {
    for (int i = 0; i < WORKERS; i++)
        if (!c_shared->gate[i].closed) c_goes_on(i);
}

// --- the manager ---------------------------------------------------------------------------------

static pid_t begin_manager(void) {
    pid_t child = fork();
    SYS(child);
    if (child) return child;
    c_as_user();
    unsetenv("LD_PRELOAD");
    char *argv[] = {"lissom", "manager", "--quiet", "--period=50ms", NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fexecve(lissom, argv, environ);
    FAIL("fexecve: %s", strerror(errno));
}

static void end(pid_t manager, int sig) {
    SYS(kill(manager, sig));
    EQ(waitpid(manager, NULL, 0), manager);
}

static int connected(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", socket_path);
    for (int i = 0; i < 10000; i++) {
        int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        SYS(s);
        if (!connect(s, (struct sockaddr *)&a, sizeof a)) return s;
        close(s);
        t_sleep_ms(1);
    }
    FAIL("connect: %s", strerror(errno));
}

// Send nonsense to the manager, and open connections that are closed at once.
static void pester(pid_t parent) {
    (void)parent;
    c_as_user();
    uint64_t seed = t_seed();
    int kept[20];
    for (int i = 0; i < 200; i++) {
        int s = connected();
        for (uint64_t k = t_rand(&seed) % 8; k; k--) {
            char bytes[1000];
            for (size_t b = 0; b < sizeof bytes; b++) bytes[b] = (char)t_rand(&seed);
            send(s, bytes, t_rand(&seed) % sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        if (i < 20)
            kept[i] = s;
        else
            close(s);
    }
    t_sleep_ms(120);
    for (int i = 0; i < 20; i++) close(kept[i]);
}

// Take the manager's place: send messages of all kinds, and pages that are not sealed and then
// truncated, or missing.
static void impostor(void) {
    uint64_t seed = t_seed();
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", socket_path);
    int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    SYS(s);
    unlink(socket_path);
    SYS(bind(s, (struct sockaddr *)&a, sizeof a));
    SYS(chmod(socket_path, 0777));
    SYS(listen(s, 100));
    for (int i = 0; i < 4; i++) {
        struct pollfd p = {s, POLLIN, 0};
        if (poll(&p, 1, 3000) <= 0) break; // natively no program connects
        int c = accept(s, NULL, NULL), fd = memfd_create("page", MFD_ALLOW_SEALING);
        SYS(c);
        SYS(fd);
        struct lissom_program page = {.magic = LISSOM_PROGRAM_MAGIC,
                                      .version = LISSOM_PROGRAM_VERSION,
                                      .target = (uint64_t)t_now(CLOCK_MONOTONIC) / 1000000 + 1000};
        page.target = page.target << 16 | 1;
        EQ(pwrite(fd, &page, sizeof page, 0), sizeof page);
        SYS(ftruncate(fd, LISSOM_PROGRAM_BYTES));
        if (i % 2) SYS(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
        uint64_t hello[2] = {LISSOM_PROGRAM_MAGIC, t_rand(&seed)};
        struct iovec v = {hello, i == 3 ? sizeof hello : sizeof *hello};
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(3 * sizeof(int))];
        } control = {0};
        int n = i == 2 ? 3 : 1;
        struct msghdr m = {.msg_iov = &v,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = CMSG_SPACE(n * sizeof(int))};
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        for (int k = 0; k < n; k++)
            memcpy(CMSG_DATA(&control.header) + k * sizeof fd, &fd, sizeof fd);
        if (sendmsg(c, &m, MSG_NOSIGNAL) < 0) EQ(errno, EPIPE);
        SYS(ftruncate(fd, 0));
        close(fd);
        go_on();
        close(c);
    }
    close(s);
    unlink(socket_path);
}

// Overwrite the page of process pid, as it is mapped there, again and again.
static void corrupt(pid_t pid) {
    char path[64], line[4096];
    unsigned long at = 0;
    uint64_t seed = t_seed();
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    for (int i = 0; i < 5000 && !at; i++) {
        FILE *f = fopen(path, "r");
        CHECK(f, "%s", strerror(errno));
        while (fgets(line, sizeof line, f))
            if (strstr(line, "memfd:lissom-program")) at = strtoul(line, NULL, 16);
        fclose(f);
        t_sleep_ms(1);
    }
    CHECK(at, "no page in process %d", (int)pid);
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDWR);
    SYS(fd);
    for (int i = 0; i < 200; i++) {
        struct lissom_program page;
        for (size_t k = 0; k < sizeof page / 8; k++) ((uint64_t *)&page)[k] = t_rand(&seed);
        if (t_rand(&seed) % 2) // a plausible one
            page.target = ((uint64_t)t_now(CLOCK_MONOTONIC) / 1000000 + t_rand(&seed) % 2000)
                              << 16 |
                          (t_rand(&seed) & (i % 2 ? 0xffff : 3));
        EQ(pwrite(fd, &page, sizeof page, (off_t)at), sizeof page);
        t_sleep_us((int)(t_rand(&seed) % 2000));
        if (i % 50 == 0) go_on();
    }
    close(fd);
}

// --- the test ------------------------------------------------------------------------------------

// The new user may not be able to open the binary by its path.
static void begin_as_user(const char *binary) {
    lissom = open(binary, O_PATH | O_CLOEXEC);
    CHECK(lissom >= 0, "%s: %s", binary, strerror(errno));
    snprintf(folder, sizeof folder, "%s", getenv(LISSOM_ENV_MANAGER));
    *strrchr(folder, '/') = 0;
    SYS(mkdir(folder, 0700));
    if (c_user) SYS(chown(folder, c_user, (gid_t)-1));
    snprintf(socket_path, sizeof socket_path, "%s", getenv(LISSOM_ENV_MANAGER));
}

// Return the n highest CPUs of `all`.
static cpu_set_t highest(const cpu_set_t *all, int n) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&set) < n; cpu--)
        if (CPU_ISSET(cpu, all)) CPU_SET(cpu, &set);
    return set;
}

// Return whether all threads of the process are confined to `set`. One thread may differ: a
// sleeping thread with the program's own mask, by which lissom detects changes of affinity.
static int keeps_to(pid_t pid, const cpu_set_t *set) {
    char path[64];
    int others = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        cpu_set_t is;
        if (e->d_name[0] == '.' || sched_getaffinity(atoi(e->d_name), sizeof is, &is)) continue;
        CPU_OR(&is, &is, set);
        others += !CPU_EQUAL(&is, set);
    }
    closedir(d);
    return others <= 1;
}

// Check that the process gets a slot for each CPU of `set`, and runs there only.
static void is_given(pid_t pid, const cpu_set_t *set) {
    c_slots_become(pid, CPU_COUNT(set));
    for (int i = 0; i < 1000 && c_slots(pid) > 0 && !keeps_to(pid, set); i++) t_sleep_ms(10);
    CHECK(c_slots(pid) < 0 || keeps_to(pid, set));
}

static void managed(const pid_t *pid, int slots) {
    c_slots_become(pid[0], slots);
    c_slots_become(pid[1], slots);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char manager_path[64];
    snprintf(manager_path, sizeof manager_path, "/tmp/lissom-test-%d/socket", (int)getpid());
    c_variable(argv, LISSOM_ENV_MANAGER, manager_path);
    c_region(argv);
    t_watchdog();
    cpu_set_t all;
    SYS(sched_getaffinity(0, sizeof all, &all));
    c_share();
    c_gate_close(&c_shared->gate[HOG], 1);
    begin_as_user(argv[1]);
    pid_t pid[WORKERS];
    for (int i = 0; i < WORKERS; i++) pid[i] = c_begin(i);
    pid_t hog = begin_hog();
    int alone = c_n_cpus, beside = c_n_cpus > 1 ? c_n_cpus - 1 : 1,
        half = c_n_cpus > 1 ? c_n_cpus / 2 : 1;
    go_on();

    // With the manager: process 1 sleeps, then runs; the hog runs, then sleeps.
    c_gate_close(&c_shared->gate[1], 1);
    c_slots_become(pid[0], alone);
    pid_t manager = begin_manager();
    c_gate_close(&c_shared->gate[HOG], 0);
    cpu_set_t beside_hog = highest(&all, beside);
    is_given(pid[0], &beside_hog);
    c_gate_close(&c_shared->gate[HOG], 1);
    c_slots_become(pid[0], alone);
    c_gate_close(&c_shared->gate[1], 0);
    managed(pid, half);
    c_gate_close(&c_shared->gate[1], 1);

    // The manager is stopped, killed and restarted.
    c_gate_close(&c_shared->gate[HOG], 0);
    for (int i = 0; i < 2; i++) {
        c_slots_become(pid[0], beside);
        SYS(kill(manager, SIGSTOP));
        c_slots_become(pid[0], alone);
        go_on();
        SYS(kill(manager, SIGCONT));
        is_given(pid[0], &beside_hog);
        end(manager, i ? SIGTERM : SIGKILL);
        c_slots_become(pid[0], alone);
        go_on();
        manager = begin_manager();
    }
    c_slots_become(pid[0], beside);
    c_ended_well(c_beside(pester));
    c_gate_close(&c_shared->gate[HOG], 1);
    c_slots_become(pid[0], alone);
    c_gate_close(&c_shared->gate[HOG], 0);
    c_slots_become(pid[0], beside);
    if (c_slots(pid[0]) > 0) corrupt(pid[0]);
    c_slots_become(pid[0], beside);
    c_gate_close(&c_shared->gate[1], 0);
    go_on();
    end(manager, SIGKILL);
    c_gate_close(&c_shared->gate[1], 1);
    impostor();
    c_slots_become(pid[0], alone);
    go_on();

    atomic_store(&c_shared->over, 1);
    c_gate_close(&c_shared->gate[1], 0);
    for (int i = 0; i < WORKERS; i++) c_ended_well(pid[i]);
    c_ended_well(hog);
    char lock[128];
    snprintf(lock, sizeof lock, "%s/socket.lock", folder);
    unlink(lock);
    unlink(socket_path);
    rmdir(folder);
    unlink(c_peers_path());
    return t_ok("cpus_managed");
}
