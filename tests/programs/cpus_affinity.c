/* SPDX-License-Identifier: MIT */
// The affinity of all threads is changed from outside, hundreds of times, while they work. The
// number of slots must follow.
#include "cpus_change.h"

static cpu_set_t all;
static int n_cpus;

static cpu_set_t some(unsigned bits) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0, i = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (bits >> (i++ % 31) & 1)) CPU_SET(cpu, &set);
    return CPU_COUNT(&set) ? set : all;
}

static int tasks(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    CHECK(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void change(pid_t pid) {
    uint64_t seed = t_seed();
    cpu_set_t one = some(1);
    // A thread that is created during a change of affinities may be missed, also natively. That
    // would include the thread by which lissom determines the number of slots. So wait for all
    // threads.
    for (int i = 0; i < 10000 && tasks(pid) < t_threads() + 2 + (c_slots(pid) >= 0); i++)
        t_sleep_ms(1);
    t_sleep_ms(20);
    for (int i = 0; i < 12; i++) {
        c_affinity(pid, &one);
        c_slots_become(pid, 1);
        t_sleep_ms((int)(t_rand(&seed) % 50));
        c_affinity(pid, &all);
        c_slots_become(pid, n_cpus);
        t_sleep_ms((int)(t_rand(&seed) % 50));
    }
    for (int i = 0; i < 150 && c_parent_lives(); i++) {
        cpu_set_t set = some(t_rand(&seed));
        c_affinity(pid, &set);
        t_sleep_us((int)(t_rand(&seed) % (i % 10 ? 3000 : 120000)));
    }
    c_affinity(pid, &all);
    c_slots_become(pid, n_cpus);
}

int main(int argc, char **argv) {
    (void)argc;
    c_region(argv);
    t_watchdog();
    SYS(sched_getaffinity(0, sizeof all, &all));
    n_cpus = CPU_COUNT(&all);
    c_work_beside(t_threads() + 1, change); // at least two CPUs are available
    return t_ok("cpus_affinity");
}
