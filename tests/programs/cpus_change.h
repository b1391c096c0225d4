/* SPDX-License-Identifier: MIT */
// For programs whose CPUs are changed from outside: threads of all kinds that keep working
// meanwhile, a process that makes the changes, and the number of slots as in `lissom run --stats`.
#ifndef CPUS_CHANGE_H
#define CPUS_CHANGE_H
#include "pthread_test.h"
#include "../../runtime/abi.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// --- slots ---------------------------------------------------------------------------------------

static struct lissom_region *region;

// Restart the program with the variable set, unless it is set: the runtime reads it at start.
static inline void c_variable(char **argv, const char *name, const char *value) {
    if (getenv(name)) return;
    setenv(name, value, 1);
    execv("/proc/self/exe", argv);
    FAIL("execv: %s", strerror(errno));
}

// Restart the program with a region for statistics like that of `lissom run --stats`, unless it was
// given one.
static inline void c_region(char **argv) {
    const char *fd = getenv(LISSOM_ENV_STATS_FD);
    if (!fd) {
        int made = memfd_create("region", MFD_ALLOW_SEALING);
        SYS(made);
        SYS(ftruncate(made, LISSOM_REGION_BYTES));
        struct lissom_header h = {.magic = LISSOM_ABI_MAGIC,
                                  .version = LISSOM_ABI_VERSION,
                                  .records = LISSOM_MAX_RECORDS,
                                  .record_bytes = sizeof(struct lissom_record)};
        EQ(pwrite(made, &h, sizeof h, 0), sizeof h);
        // the runtime accepts only regions with these seals
        SYS(fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
        char number[16];
        snprintf(number, sizeof number, "%d", made);
        c_variable(argv, LISSOM_ENV_STATS_FD, number);
    }
    region = mmap(NULL, LISSOM_REGION_BYTES, PROT_READ, MAP_SHARED, atoi(fd), 0);
    CHECK(region != MAP_FAILED);
}

// Return the number of slots of process pid; -1 if it is not under lissom.
static inline int c_slots(pid_t pid) {
    int slots = -1;
    for (uint32_t i = 0; i < region->header.claimed && i < LISSOM_MAX_RECORDS; i++)
        if (region->record[i].pid == (uint32_t)pid &&
            region->record[i].state == LISSOM_STATE_active)
            slots = (int)__atomic_load_n(&region->record[i].slots, __ATOMIC_RELAXED);
    return slots;
}

// Check that the process gets this number of slots within ten seconds; do nothing if it has none.
// (The promise is a tenth of a second; the time is not tested.)
#define c_slots_become(pid, slots) c_slots_become_at(pid, slots, __LINE__)
static inline void c_slots_become_at(pid_t pid, int slots, int line) {
    for (int i = 0; i < 1000 && c_slots(pid) != slots; i++) {
        if (c_slots(pid) < 0) return;
        t_sleep_ms(10); // poll rarely, so that this process does not count as running
    }
    CHECK(c_slots(pid) == slots, "line %d: %d slots, expected %d", line, c_slots(pid), slots);
}

// --- the process that makes the changes ----------------------------------------------------------

static inline int c_parent_lives(void) { return getppid() != 1; }

// Run f(getpid()) in a child, which runs natively. Returns the child.
static inline pid_t c_beside(void (*f)(pid_t)) {
    pid_t self = getpid(), child = fork();
    SYS(child);
    if (!child) {
        f(self);
        _exit(0);
    }
    return child;
}

static inline void c_ended_well(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) EQ(errno, EINTR);
    EQ(status, 0);
}

// Set the affinity of all threads of pid, as `taskset -a -p`.
static inline void c_affinity(pid_t pid, const cpu_set_t *set) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && sched_setaffinity(atoi(e->d_name), sizeof *set, set))
            EQ(errno, ESRCH); // it has exited
    closedir(d);
}

// Write a file of a cgroup. Returns 0; or -1, with errno.
static inline int c_try_write(const char *folder, const char *file, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    int bad = !f || fputs(text, f) < 0;
    bad |= f && fclose(f);
    return bad ? -1 : 0;
}

// Return the number of CPUs on which the kernel may run the calling thread. sched_getaffinity
// returns the mask that the program should see instead.
static inline int c_cpus_allowed(void) {
    char line[4096];
    int n = 0;
    FILE *f = fopen("/proc/thread-self/status", "r");
    CHECK(f);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "Cpus_allowed:", 13)) continue;
        for (char *c = line + 13; *c; c++) {
            int digit = *c >= '0' && *c <= '9'   ? *c - '0'
                        : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10
                                                 : 0;
            n += __builtin_popcount((unsigned)digit);
        }
    }
    fclose(f);
    return n;
}

// --- threads that keep working -------------------------------------------------------------------

static volatile int stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn, at_turns;
static atomic_long done_by[1024];
static atomic_int flag;
static int spinners;
static long guarded;

static inline void compute(int us) {
    int64_t end = t_now(CLOCK_MONOTONIC) + (int64_t)us * 1000;
    while (t_now(CLOCK_MONOTONIC) < end);
}

// Take turns by a condition variable.
static inline void take_turn(int i) {
    pthread_mutex_lock(&mutex);
    while (turn % at_turns != i && !stop) pthread_cond_wait(&turn_changed, &mutex);
    turn++;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&mutex);
}

// Take turns by a flag, busy-waiting for it.
static inline void pass_flag(int i) {
    while (atomic_load_explicit(&flag, memory_order_acquire) % spinners != i && !stop)
        __builtin_ia32_pause();
    atomic_fetch_add(&flag, 1);
}

// Work in one of five ways: turns, flags, a mutex, computing with sleeps, computing alone.
static inline void *c_worker(void *arg) {
    int i = (int)(intptr_t)arg;
    uint64_t seed = t_seed() + (uint64_t)i;
    while (!stop) {
        switch (i % 5) {
        case 0: take_turn(i / 5); break;
        case 1: pass_flag(i / 5); break;
        case 2:
            pthread_mutex_lock(&mutex);
            guarded++;
            pthread_mutex_unlock(&mutex);
            compute(20);
            break;
        case 3:
            compute((int)(t_rand(&seed) % 300));
            t_sleep_us((int)(t_rand(&seed) % 300));
            break;
        default: compute(1000);
        }
        atomic_fetch_add(&done_by[i], 1);
    }
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

// A gate in memory that processes share. Threads that reach a closed gate sleep until it opens.
struct c_gate {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    int closed;
};

static inline void c_gate_init(struct c_gate *g) {
    pthread_mutexattr_t m;
    pthread_condattr_t c;
    OK(pthread_mutexattr_init(&m));
    OK(pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutex_init(&g->mutex, &m));
    OK(pthread_condattr_init(&c));
    OK(pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED));
    OK(pthread_cond_init(&g->opened, &c));
}

static inline void c_gate_pass(struct c_gate *g) {
    OK(pthread_mutex_lock(&g->mutex));
    while (g->closed) OK(pthread_cond_wait(&g->opened, &g->mutex));
    OK(pthread_mutex_unlock(&g->mutex));
}

static inline void c_gate_close(struct c_gate *g, int closed) {
    OK(pthread_mutex_lock(&g->mutex));
    g->closed = closed;
    if (!closed) OK(pthread_cond_broadcast(&g->opened));
    OK(pthread_mutex_unlock(&g->mutex));
}

// Run n threads until f has returned in a child and each thread has done some work.
static inline void c_work_beside(int n, void (*f)(pid_t)) {
    at_turns = (n + 4) / 5;
    spinners = (n + 3) / 5;
    pid_t child = c_beside(f);
    pthread_t t[1024];
    for (int i = 0; i < n; i++) t[i] = t_spawn(c_worker, (void *)(intptr_t)i);
    c_ended_well(child);
    for (int i = 0; i < n; i++)
        for (int k = 0; atomic_load(&done_by[i]) == 0; k++)
            t_sleep_ms(1); // hangs if a thread never gets there
    stop = 1;
    for (int i = 0; i < n; i++) t_join(t[i]);
}

// --- processes of such threads -------------------------------------------------------------------

enum { C_PROCESSES = 3 }; // maximum

static struct c_shared {
    struct c_gate gate[C_PROCESSES];
    atomic_int over;
    atomic_long done[C_PROCESSES];
} *c_shared;
static int c_self, c_n_cpus;
static uid_t c_user; // user of the processes; 0: this user

// Run as another user. Programs of other users are not counted: neither other load on this machine
// nor the observing process, which waits for CPUs, too.
static inline void c_as_user(void) {
    if (c_user) SYS(setresuid(c_user, c_user, c_user));
}

static inline const char *c_peers_path(void) {
    static char path[64];
    snprintf(path, sizeof path, LISSOM_PEERS_PATH "%d", (int)(c_user ? c_user : geteuid()));
    return path;
}

// Set up the shared state. Call it before any process begins.
static inline void c_share(void) {
    cpu_set_t all;
    SYS(sched_getaffinity(0, sizeof all, &all));
    c_n_cpus = CPU_COUNT(&all);
    c_shared =
        mmap(NULL, sizeof *c_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(c_shared != MAP_FAILED);
    if (geteuid() == 0) c_user = 50000 + (uid_t)getpid() % 10000;
    for (int i = 0; i < C_PROCESSES; i++) c_gate_init(&c_shared->gate[i]);
}

static inline void *c_work(void *arg) {
    (void)arg;
    while (!atomic_load(&c_shared->over)) {
        c_gate_pass(&c_shared->gate[c_self]);
        pthread_mutex_lock(&mutex);
        guarded++;
        pthread_mutex_unlock(&mutex);
        compute(100);
        atomic_fetch_add(&c_shared->done[c_self], 1);
    }
    return NULL;
}

// Start process i with more threads than CPUs.
static inline pid_t c_begin(int i) {
    pid_t child = fork();
    SYS(child);
    if (child) return child;
    c_as_user();
    c_self = i;
    int n = t_threads() + c_n_cpus;
    pthread_t t[1024];
    for (int k = 0; k < n; k++) t[k] = t_spawn(c_work, NULL);
    for (int k = 0; k < n; k++) t_join(t[k]);
    _exit(0);
}

static inline void c_goes_on(int i) {
    long before = atomic_load(&c_shared->done[i]);
    while (atomic_load(&c_shared->done[i]) < before + 20) t_sleep_ms(1);
}
#endif
