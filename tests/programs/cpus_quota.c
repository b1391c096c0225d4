/* SPDX-License-Identifier: MIT */
// The CPU quotas of the process's cgroup and of its parent change while the process works; then it
// moves to other cgroups. Needs root.
#include "cpus_change.h"
#include <sys/stat.h>

static int version, n_cpus;
static char top[256], upper[300], lower[400]; // the root group's, its child's, its grandchild's

// Set a quota. Returns 0, or -1: in cgroup v1, no group may have more than its parent.
static int try_quota(const char *folder, int percent) {
    char text[64];
    if (version == 2)
        snprintf(text, sizeof text, percent < 0 ? "max 100000" : "%d 100000", percent * 1000);
    else
        snprintf(text, sizeof text, "%d", percent < 0 ? -1 : percent * 1000);
    return c_try_write(folder, version == 2 ? "cpu.max" : "cpu.cfs_quota_us", text);
}

static void quota(const char *folder, int percent) {
    CHECK(!try_quota(folder, percent), "%s: %s", folder, strerror(errno));
}

static void move(pid_t pid, const char *folder) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    CHECK(!c_try_write(folder, "cgroup.procs", text), "%s: %s", folder, strerror(errno));
}

static int least(int a, int b) { return a < b ? a : b; }

static void change(pid_t pid) {
    uint64_t seed = t_seed();
    t_sleep_ms(20);
    move(pid, lower);
    c_slots_become(pid, n_cpus);
    quota(lower, 50);
    c_slots_become(pid, 1);
    quota(lower, 150);
    c_slots_become(pid, least(2, n_cpus));
    quota(lower, -1); // its own limit is gone, its parent's is not
    quota(upper, 100);
    c_slots_become(pid, 1);
    if (!try_quota(lower, 150)) {
        t_sleep_ms(200);
        c_slots_become(pid, 1);
    }
    quota(lower, -1);
    quota(upper, -1);
    c_slots_become(pid, n_cpus);
    quota(upper, 30);
    c_slots_become(pid, 1);
    move(pid, top);
    c_slots_become(pid, n_cpus);
    for (int i = 0; i < 60 && c_parent_lives(); i++) {
        switch (t_rand(&seed) % 4) {
        case 0: move(pid, lower); break;
        case 1:
            move(pid, version == 2 ? top : upper);
            break; // in v2 only leaves and the root have processes
        case 2: try_quota(lower, 50 + (int)(t_rand(&seed) % 200)); break;
        default: try_quota(upper, 50 + (int)(t_rand(&seed) % 200));
        }
        t_sleep_us((int)(t_rand(&seed) % 30000));
    }
    move(pid, top);
    c_slots_become(pid, n_cpus);
    rmdir(lower); // with the files from which the process read its limits
    rmdir(upper);
    t_sleep_ms(120);
    c_slots_become(pid, n_cpus);
}

static void remove_folders(void) {
    rmdir(lower);
    rmdir(upper);
}

int main(int argc, char **argv) {
    (void)argc;
    c_region(argv);
    t_watchdog();
    const char *tops[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"};
    cpu_set_t all;
    SYS(sched_getaffinity(0, sizeof all, &all));
    n_cpus = CPU_COUNT(&all);
    for (int i = 0; i < 3 && !version; i++) {
        struct stat s;
        char path[512];
        snprintf(top, sizeof top, "%s", tops[i]);
        snprintf(upper, sizeof upper, "%s/lissom-test-%d", top, (int)getpid());
        snprintf(lower, sizeof lower, "%s/lower", upper);
        c_try_write(top, "cgroup.subtree_control", "+cpu");
        mkdir(upper, 0755);
        c_try_write(upper, "cgroup.subtree_control", "+cpu");
        mkdir(lower, 0755);
        snprintf(path, sizeof path, "%s/cpu.max", lower);
        if (!stat(path, &s)) version = 2;
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", lower);
        if (!stat(path, &s)) version = 1;
        if (!version) remove_folders();
    }
    CHECK(version);
    atexit(remove_folders);
    c_work_beside(t_threads() + 1, change);
    return t_ok("cpus_quota");
}
