// Attributes of a kernel thread belong to the thread that has set them, and to its children: timer
// slack, parent-death signal, no_new_privs, securebits, own working directory and umask, scheduling
// class, I/O priority, gs base, protection keys, CPU time, robust list, performance counter,
// session keyring, ports, Landlock domain. Attributes that the machine lacks are left out.
#include "pthread_test.h"
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/io.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

// Threads with an odd number set some kinds before OWN_KINDS; a thread that does needs its own
// kernel thread. COUNTER and TIMES have no values: reading them checks them.
enum { FOLDER, PORTS, IO_PRIORITY, POLICY, COUNTER, KEYRING, KEEPCAPS };
enum { SECUREBITS = KEEPCAPS + 1, LANDLOCK, OWN_KINDS };
enum { DEATH = OWN_KINDS, NO_PRIVILEGES, GS, SLACK, SETTABLE };
enum { UMASK = SETTABLE, ROBUST, TIMES, KEY_WRITE, KEY_READ, KINDS };
static const char *const names[] = {
    "folder",   "ports",      "I/O priority", "class",        "counter",        "keyring",
    "keepcaps", "securebits", "Landlock",     "death signal", "no_new_privs",   "gs base",
    "slack",    "umask",      "robust list",  "times",        "write by a key", "read by a key",
};
enum { HWCAP2_HAS_FSGSBASE = 2, FORKS = 3 };
static pthread_barrier_t barrier;
static int threads, rounds, key;
static bool fast_gs;
static char *page; // protected by the key
static char folder[64], file[96];
static long of_process[KINDS];

static __thread int me, counter = -1;
static __thread long want[KINDS], rights;
static __thread uint64_t words[4]; // gs base points to one of them
static __thread int64_t counted, cpu_time, usage;

static void compute(int n) {
    for (int k = 0; k < n; k++) __asm__ volatile("pause");
}
static void look_times(void) {
    struct rusage u;
    SYS(getrusage(RUSAGE_THREAD, &u));
    int64_t now = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000;
    now += u.ru_utime.tv_usec + u.ru_stime.tv_usec;
    CHECK(now >= usage, "the thread's usage went back by %lld us", (long long)(usage - now));
    usage = now;
    now = t_now(CLOCK_THREAD_CPUTIME_ID);
    CHECK(now >= cpu_time, "CPU time went back by %lld ns", (long long)(cpu_time - now));
    cpu_time = now;
}
static void look_counter(void) {
    long long before = -1, after = -1;
    if (counter < 0) return;
    EQ(read(counter, &before, sizeof before), sizeof before);
    compute(100);
    EQ(read(counter, &after, sizeof after), sizeof after);
    CHECK(before >= counted && after > before, "%lld, %lld", before, after);
    counted = after;
}
static long get(int kind) {
    long value = -1;
    size_t size;
    char path[PATH_MAX];
    switch (kind) {
    case FOLDER: CHECK(getcwd(path, sizeof path), "getcwd"); return !strcmp(path, folder);
    case PORTS: // faults without permission; 0x80 is the diagnostics port
        if (want[PORTS]) inb(0x80);
        return want[PORTS];
    case IO_PRIORITY: return syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
    case POLICY: return sched_getscheduler(0);
    case COUNTER: look_counter(); return want[COUNTER];
    case KEYRING: return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    case KEEPCAPS: return prctl(PR_GET_KEEPCAPS);
    case SECUREBITS: return prctl(PR_GET_SECUREBITS);
    case LANDLOCK: return (value = open(file, O_WRONLY)) < 0 ? errno : close((int)value);
    case DEATH: SYS(prctl(PR_GET_PDEATHSIG, &value)); return (int)value;
    case NO_PRIVILEGES: return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    case GS: EQ(t_raw(SYS_arch_prctl, ARCH_GET_GS, (long)&value, 0, 0, 0), 0); return value;
    case SLACK: return prctl(PR_GET_TIMERSLACK);
    case UMASK: return umask((mode_t)want[UMASK]); // no change if it is right
    case ROBUST: SYS(syscall(SYS_get_robust_list, 0, &value, &size)); return value;
    case TIMES: look_times(); return 0;
    case KEY_WRITE: return t_raw(SYS_clock_gettime, CLOCK_REALTIME, (long)page, 0, 0, 0);
    case KEY_READ: return t_raw(SYS_access, (long)page + 2048, F_OK, 0, 0, 0); // "": ENOENT
    }
    return 0;
}

static bool set_batch(void) {
    struct sched_param none = {0};
    uint32_t attr[12]; // size, class, others
    if (me % 4 == 1) return sched_setscheduler(0, SCHED_BATCH, &none) == 0;
    SYS(syscall(SYS_sched_getattr, 0, attr, sizeof attr, 0));
    attr[1] = SCHED_BATCH;
    return syscall(SYS_sched_setattr, 0, attr, 0) == 0;
}
static bool open_counter(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1};
    counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return counter >= 0;
}
static bool restrict_oneself(void) { // forbid this thread to open files for writing
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0) return false;
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    want[NO_PRIVILEGES] = 1;
    SYS(syscall(SYS_landlock_restrict_self, rules, 0));
    return close(rules) == 0;
}
// Set an attribute, and `want` to the value to be read. Returns false if the machine lacks the
// attribute or does not permit it.
static bool set(int kind, long value) {
    switch (kind) {
    case FOLDER:
        EQ(t_raw(SYS_unshare, CLONE_FS, 0, 0, 0, 0), 0);
        SYS(chdir(folder));
        umask((mode_t)(want[UMASK] = 05));
        return true;
    case PORTS: return ioperm(0x80, 1, 1) == 0;
    case IO_PRIORITY: return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, value) == 0;
    case POLICY: return set_batch();
    case COUNTER: return open_counter();
    case KEYRING: return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0;
    case KEEPCAPS:
        return !prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) && (want[SECUREBITS] |= SECBIT_KEEP_CAPS);
    case SECUREBITS: return geteuid() == 0 && prctl(PR_SET_SECUREBITS, value) == 0;
    case LANDLOCK: return restrict_oneself();
    case DEATH: return prctl(PR_SET_PDEATHSIG, value) == 0;
    case NO_PRIVILEGES: return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    case GS: return t_raw(SYS_arch_prctl, ARCH_SET_GS, value, 0, 0, 0) == 0;
    case SLACK: return prctl(PR_SET_TIMERSLACK, value) == 0;
    }
    return false;
}
static long to_set(int kind) {
    switch (kind) {
    case IO_PRIORITY: return IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 6);
    case POLICY: return SCHED_BATCH;
    case SECUREBITS: return want[SECUREBITS] | SECBIT_NO_SETUID_FIXUP;
    case LANDLOCK: return EACCES;
    case DEATH: return SIGURG;
    case GS: return (long)&words[0];
    case SLACK: return 60000 + me;
    }
    return 1;
}
static bool wants(int kind) {
    int groups = threads / 2 < OWN_KINDS ? threads / 2 : OWN_KINDS;
    if (kind == DEATH) return me % 3 == 0;
    if (kind == NO_PRIVILEGES) return me == 0; // and one more, for Landlock
    if (kind == GS) return me % 3 != 1;
    if (kind == SLACK) return true;
    if (kind == LANDLOCK && me / 2 >= groups) return false;
    return me % 2 && me / 2 % groups == kind % groups;
}

// Make no system call, so that the thread keeps its carrier.
static void look_registers(void) {
    long base = want[GS];
    if (fast_gs) __asm__ volatile("rdgsbase %0" : "=r"(base));
    EQ(base, want[GS]);
    if (base != of_process[GS]) {
        uint64_t word;
        __asm__ volatile("movq %%gs:0, %0" : "=r"(word));
        EQ(word, *(uint64_t *)base);
    }
    if (key > 0) EQ(pkey_get(key), rights);
}
// Start with a different check each time: a check may migrate the thread home, and later ones find
// it there. A thread that migrates home after most waits soon stays there. So make `all` checks
// only sometimes.
static void look(int first, bool all) {
    look_registers();
    for (int i = 0; i < KINDS; i++) {
        int kind = (first + i) % KINDS;
        bool home = kind != FOLDER && kind < KEY_WRITE;
        if (home ? !all : kind != FOLDER && key <= 0) continue;
        long got = get(kind);
        CHECK(got == want[kind], "%s: %ld, expected %ld", names[kind], got, want[kind]);
    }
}
static void in_child(int first) {
    int status, pid = fork();
    SYS(pid);
    if (!pid) {
        want[DEATH] = 0; // all others are inherited
        cpu_time = usage = 0;
        counter = -1;
        look(first, true);
        _exit(0);
    }
    SYS(waitpid(pid, &status, 0));
    EQ(status, 0);
}

static void *work(void *arg) {
    me = (int)(intptr_t)arg;
    memcpy(want, of_process, sizeof want);
    want[DEATH] = 0; // never inherited
    want[ROBUST] = get(ROBUST);
    for (int i = 0; i < 50; i++) sched_yield(); // it may run on another carrier by now
    pthread_barrier_wait(&barrier);
    for (int kind = 0; kind < SETTABLE; kind++) {
        long value = to_set(kind);
        if (wants(kind) && set(kind, value)) want[kind] = kind == KEYRING ? get(KEYRING) : value;
    }
    for (int i = 0; i < rounds; i++) {
        words[i % 4] = (uint64_t)me << 32 | (uint64_t)i;
        if (fast_gs && me % 3 == 2) // the others set it once, by arch_prctl
            __asm__ volatile("wrgsbase %0" : : "r"(want[GS] = (long)&words[i % 4]));
        rights = (me + i) % 4;
        if (key > 0) OK(pkey_set(key, (unsigned)rights));
        want[KEY_WRITE] = rights ? -EFAULT : 0; // the kernel obeys the key, too
        want[KEY_READ] = rights & PKEY_DISABLE_ACCESS ? -EFAULT : -ENOENT;
        if ((me + i) % 3 == 1) sched_yield();
        if ((me * 7 + i) % 4 == 2) compute(5000);
        pthread_barrier_wait(&barrier);
        look(me + i, i % 5 == 0 || i >= rounds * 3 / 4);
    }
    for (int i = 0; i < FORKS; i++) in_child(me + i);
    look(me, true);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void) {
    t_watchdog();
    threads = t_threads();
    rounds = t_share(2000, threads);
    fast_gs = getauxval(AT_HWCAP2) & HWCAP2_HAS_FSGSBASE;
    key = pkey_alloc(0, 0);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (key > 0) SYS(pkey_mprotect(page, 4096, PROT_READ | PROT_WRITE, key));
    snprintf(folder, sizeof folder, "/tmp/lissom-attributes-%d", getpid());
    snprintf(file, sizeof file, "%s/file", folder);
    SYS(mkdir(folder, 0700));
    umask((mode_t)(want[UMASK] = 027));
    SYS(mknod(file, S_IFREG | 0600, 0));
    for (int kind = 0; kind < KINDS; kind++) of_process[kind] = want[kind] = get(kind);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    t_run(threads, work);
    look(0, true);
    unlink(file);
    rmdir(folder);
    return t_ok("process_attributes");
}
