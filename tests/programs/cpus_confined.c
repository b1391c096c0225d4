/* SPDX-License-Identifier: MIT */
// With fewer slots than CPUs a process confines itself to as many CPUs as slots. This applies to
// its threads unless they have a mask of their own. The process does not see it, children do not
// inherit it, and masks set from outside take precedence.
#include "cpus_change.h"
#include <spawn.h>

extern char **environ;
static cpu_set_t all;
static int n_cpus, last_cpu;

static void sees_all(const char *who) {
    cpu_set_t set;
    SYS(sched_getaffinity(0, sizeof set, &set));
    CHECK(CPU_EQUAL(&set, &all), "%s sees %d CPUs", who, CPU_COUNT(&set));
}

static void *looks(void *unused) {
    sees_all("a new thread");
    return unused;
}

// --- threads -------------------------------------------------------------------------------------

static void *makes_children(void *unused) {
    while (!stop) {
        pid_t child = fork();
        SYS(child);
        if (!child) {
            sees_all("a child");
            _exit(c_cpus_allowed() < n_cpus);
        }
        c_ended_well(child);
        char *argv[] = {"cpus_confined", "child", NULL};
        EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
        c_ended_well(child);
        sees_all("its parent");
    }
    return unused;
}

static void *has_own_mask(void *from_attributes) {
    if (!from_attributes) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(last_cpu, &set);
        SYS(sched_setaffinity(0, sizeof set, &set));
    }
    while (!stop) {
        EQ(sched_getcpu(), last_cpu);
        t_sleep_us(500);
    }
    return NULL;
}

static void *makes_threads(void *unused) {
    while (!stop) {
        pthread_t t;
        EQ(pthread_create(&t, NULL, looks, NULL), 0);
        EQ(pthread_join(t, NULL), 0);
    }
    return unused;
}

// --- from outside --------------------------------------------------------------------------------

// Return the number of CPUs in the main thread's mask, as seen from outside.
static int outside_sees(pid_t pid) {
    cpu_set_t set;
    SYS(sched_getaffinity(pid, sizeof set, &set));
    return CPU_COUNT(&set);
}

static void change(pid_t pid) {
    // This never happens while other programs are busy all the time.
    for (int i = 0; i < 1000 && c_slots(pid) == 1 && outside_sees(pid) != 1; i++) t_sleep_ms(1);
    t_sleep_ms(300);
}

int main(int argc, char **argv) {
    if (argc > 1) return c_cpus_allowed() < atoi(getenv("N_CPUS"));
    c_variable(argv, LISSOM_ENV_CPUS, "1");
    c_region(argv);
    t_watchdog();
    SYS(sched_getaffinity(0, sizeof all, &all));
    n_cpus = CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) last_cpu = cpu;
    char number[16];
    snprintf(number, sizeof number, "%d", n_cpus);
    setenv("N_CPUS", number, 1);
    for (int round = 0; round < 3; round++) {
        pthread_t own[4];
        pthread_attr_t attributes;
        cpu_set_t last;
        CPU_ZERO(&last);
        CPU_SET(last_cpu, &last);
        EQ(pthread_attr_init(&attributes), 0);
        EQ(pthread_attr_setaffinity_np(&attributes, sizeof last, &last), 0);
        stop = 0;
        EQ(pthread_create(&own[0], &attributes, has_own_mask, &last), 0);
        EQ(pthread_create(&own[1], NULL, has_own_mask, NULL), 0);
        EQ(pthread_create(&own[2], NULL, makes_children, NULL), 0);
        EQ(pthread_create(&own[3], NULL, makes_threads, NULL), 0);
        c_work_beside(t_threads() + 1, change);
        for (int i = 0; i < 4; i++) EQ(pthread_join(own[i], NULL), 0);
        sees_all("the main thread");
        for (int i = 0; i < 10000 && c_cpus_allowed() < n_cpus; i++) t_sleep_ms(1);
        CHECK(c_cpus_allowed() >= n_cpus);
    }
    return t_ok("cpus_confined");
}
