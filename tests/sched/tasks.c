/* SPDX-License-Identifier: MIT */
// Tasks that a scheduler has to handle. Each ends by itself, with 0 if all its checks passed.
//
//     tasks pinned CPU SECONDS      compute on this CPU, and check to be nowhere else
//     tasks wander SECONDS          migrate from CPU to CPU by affinity, and check each time
//     tasks policies SECONDS        compute, and change policy and nice value all the time
//     tasks realtime CPU SECONDS    SCHED_FIFO: keep all other tasks off this CPU
//     tasks short COUNT AT_A_TIME   start and reap COUNT short processes, each tenth by exec
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn)) static void fail(const char *what) {
    fprintf(stderr, "tasks: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void compute(long iterations) {
    static volatile uint64_t x;
    while (iterations-- > 0) x = x * 6364136223846793005u + 1442695040888963407u;
}

static void go_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

static void expect_cpu(int cpu) {
    int is = sched_getcpu();
    if (is != cpu) {
        fprintf(stderr, "tasks: on CPU %d, and allowed on %d only\n", is, cpu);
        exit(1);
    }
}

static void pinned(int cpu, double seconds) {
    go_to(cpu);
    for (double end = now() + seconds; now() < end; compute(10000)) expect_cpu(cpu);
}

static void wander(double seconds) {
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int cpu = 0;
    for (double end = now() + seconds; now() < end; cpu = (cpu + 1) % cpus) {
        go_to(cpu);
        for (int i = 0; i < 20; i++) {
            expect_cpu(cpu);
            compute(10000);
        }
        if (cpu % 2 == 0) usleep(1000);
    }
}

static void policies(double seconds) {
    static const int policy[] = {SCHED_BATCH, SCHED_OTHER, SCHED_IDLE, SCHED_OTHER};
    const struct sched_param none = {0};
    int turn = 0;
    for (double end = now() + seconds; now() < end; turn++) {
        if (sched_setscheduler(0, policy[turn % 4], &none) != 0) fail("sched_setscheduler");
        if (setpriority(PRIO_PROCESS, 0, turn % 20) != 0) fail("setpriority");
        compute(100000);
    }
}

static void realtime(int cpu, double seconds) {
    const struct sched_param parameter = {.sched_priority = 10};
    go_to(cpu);
    if (sched_setscheduler(0, SCHED_FIFO, &parameter) != 0) fail("sched_setscheduler");
    for (double end = now() + seconds; now() < end;) compute(10000);
}

static void reap(void) {
    int status;
    if (wait(&status) < 0) fail("wait");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
        fprintf(stderr, "tasks: a child ended with status %#x\n", (unsigned)status);
        exit(1);
    }
}

static void short_lived(long count, long at_a_time) {
    long alive = 0;
    for (long i = 0; i < count; i++) {
        if (alive == at_a_time) {
            reap();
            alive--;
        }
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            compute(i % 7 * 1000);
            if (i % 10 == 0) execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(7);
        }
        alive++;
    }
    for (; alive > 0; alive--) reap();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (argc == 4 && !strcmp(what, "pinned"))
        pinned(atoi(argv[2]), atof(argv[3]));
    else if (argc == 3 && !strcmp(what, "wander"))
        wander(atof(argv[2]));
    else if (argc == 3 && !strcmp(what, "policies"))
        policies(atof(argv[2]));
    else if (argc == 4 && !strcmp(what, "realtime"))
        realtime(atoi(argv[2]), atof(argv[3]));
    else if (argc == 4 && !strcmp(what, "short"))
        short_lived(atol(argv[2]), atol(argv[3]));
    else {
        fputs("tasks: see the head of tests/sched/tasks.c\n", stderr);
        return 2;
    }
    return 0;
}
