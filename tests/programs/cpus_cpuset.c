/* SPDX-License-Identifier: MIT */
// The cpuset of a process changes while it confines itself to one CPU, which may or may not be in
// the new cpuset. In the end it may use all CPUs again. Needs root.
#include "cpus_change.h"
#include <sys/stat.h>

static cpu_set_t all;
static int n_cpus, first_cpu, last_cpu;
static char top[64], folder[128];

static void cpus(const char *list) {
    CHECK(!c_try_write(folder, "cpuset.cpus", list), "%s: %s", folder, strerror(errno));
}

static void change(pid_t pid) {
    uint64_t seed = t_seed();
    char number[16], one[16], other[16], both[40];
    snprintf(number, sizeof number, "%d", (int)pid);
    snprintf(one, sizeof one, "%d", first_cpu);
    snprintf(other, sizeof other, "%d", last_cpu);
    snprintf(both, sizeof both, "%d,%d", first_cpu, last_cpu);
    const char *lists[] = {one, other, both};
    cpus(both);
    CHECK(!c_try_write(folder, "cgroup.procs", number), "%s: %s", folder, strerror(errno));
    for (int i = 0; i < 20 && c_parent_lives(); i++) {
        cpus(lists[t_rand(&seed) % 3]);
        t_sleep_us((int)(t_rand(&seed) % 150000));
    }
    cpus(both);
    t_sleep_ms(120);
    CHECK(!c_try_write(top, "cgroup.procs", number), "%s: %s", top, strerror(errno));
}

// Remove the cgroup. The kernel takes a moment to forget processes that have left.
static void remove_folder(void) {
    for (int i = 0; i < 1000 && rmdir(folder) && errno == EBUSY; i++) t_sleep_ms(1);
}

int main(int argc, char **argv) {
    (void)argc;
    c_variable(argv, LISSOM_ENV_CPUS, "1");
    c_region(argv);
    t_watchdog();
    SYS(sched_getaffinity(0, sizeof all, &all));
    n_cpus = CPU_COUNT(&all);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
        if (CPU_ISSET(cpu, &all)) {
            first_cpu = cpu;
            if (!last_cpu) last_cpu = cpu;
        }
    const char *tops[] = {"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"};
    char nodes[256] = "0";
    int found = 0;
    for (int i = 0; i < 2 && !found; i++) {
        struct stat s;
        char path[256];
        snprintf(top, sizeof top, "%s", tops[i]);
        snprintf(folder, sizeof folder, "%s/lissom-test-%d", top, (int)getpid());
        c_try_write(top, "cgroup.subtree_control", "+cpuset");
        mkdir(folder, 0755);
        snprintf(path, sizeof path, "%s/cpuset.cpus", folder);
        found = !stat(path, &s);
        if (!found) rmdir(folder);
    }
    CHECK(found);
    atexit(remove_folder);
    char path[128];
    snprintf(path, sizeof path, "%s/cpuset.mems", top);
    FILE *f = fopen(path, "r");
    // cgroup v1 requires it
    if (f && fgets(nodes, sizeof nodes, f)) c_try_write(folder, "cpuset.mems", nodes);
    if (f) fclose(f);
    for (int round = 0; round < 2; round++) {
        stop = 0;
        c_work_beside(t_threads() + 1, change);
        for (int i = 0; i < 10000 && c_cpus_allowed() < n_cpus; i++) t_sleep_ms(1);
        EQ(c_cpus_allowed(), n_cpus);
        pid_t child = fork();
        SYS(child);
        if (!child)
            execl("/bin/sh", "sh", "-c",
                  "exit $(grep -c '^Cpus_allowed_list:.*[-,]' /proc/self/status)", NULL);
        int status;
        EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (n_cpus > 1), "a child has fewer CPUs");
    }
    return t_ok("cpus_cpuset");
}
