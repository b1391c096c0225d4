/* SPDX-License-Identifier: MIT */
// The number of CPUs that the program sees in each way to ask. Argument: the expected number.
#include "pthread_test.h"
#include <fcntl.h>
#include <stdbool.h>
#include <sys/sysinfo.h>

static int lines_with(const char *path, const char *begin, bool then_digit) {
    FILE *f = fopen(path, "re");
    CHECK(f);
    char line[8192];
    int n = 0;
    size_t length = strlen(begin);
    while (fgets(line, sizeof line, f))
        n += !strncmp(line, begin, length) &&
             (!then_digit || (line[length] >= '0' && line[length] <= '9'));
    fclose(f);
    return n;
}

// Count the CPUs of a list such as 0-1,4.
static int listed(const char *path) {
    char text[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC), n = 0;
    SYS(fd);
    CHECK(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    for (char *p = text; *p && *p != '\n'; p += *p == ',') {
        long first = strtol(p, &p, 10), last = first;
        if (*p == '-') last = strtol(p + 1, &p, 10);
        n += (int)(last - first) + 1;
    }
    return n;
}

static void all_ways(int expected) {
    cpu_set_t set, again;
    SYS(sched_getaffinity(0, sizeof set, &set));
    EQ(CPU_COUNT(&set), expected);
    EQ(pthread_getaffinity_np(pthread_self(), sizeof again, &again), 0);
    CHECK(CPU_EQUAL(&set, &again));
    // The kernel accepts a shorter mask, as Python passes it, if all possible CPUs fit in.
    uint64_t word[2];
    if (get_nprocs_conf() <= 64)
        EQ(syscall(SYS_sched_getaffinity, 0, sizeof word[0], word), sizeof word[0]);
    if (get_nprocs_conf() <= 64) EQ(__builtin_popcountll(word[0]), expected);
    EQ(syscall(SYS_sched_getaffinity, 0, 4, word), -1);
    EQ(errno, EINVAL);
    EQ(sysconf(_SC_NPROCESSORS_ONLN), expected);
    EQ(get_nprocs(), expected);
    EQ(lines_with("/proc/cpuinfo", "processor\t", false), expected);
    EQ(lines_with("/proc/stat", "cpu", true), expected);
    EQ(lines_with("/proc/stat", "cpu ", false), 1);
    EQ(lines_with("/proc/stat", "ctxt ", false), 1);
    EQ(listed("/sys/devices/system/cpu/online"), expected);
}

static void *in_thread(void *arg) {
    all_ways(*(int *)arg);
    return NULL;
}

int main(int argc, char **argv) {
    t_watchdog();
    CHECK(argc == 2);
    int expected = atoi(argv[1]);
    all_ways(expected);
    pthread_t thread;
    EQ(pthread_create(&thread, NULL, in_thread, &expected), 0);
    EQ(pthread_join(thread, NULL), 0);

    // A program may choose one CPU for a while, and restore the mask that it had read.
    cpu_set_t read, one;
    SYS(sched_getaffinity(0, sizeof read, &read));
    int first = 0;
    while (!CPU_ISSET(first, &read)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    SYS(sched_setaffinity(0, sizeof one, &one));
    cpu_set_t now;
    SYS(sched_getaffinity(0, sizeof now, &now));
    CHECK(CPU_EQUAL(&now, &one));
    SYS(sched_setaffinity(0, sizeof read, &read));
    all_ways(expected);

    EQ(open((const char *)1, O_RDONLY), -1);
    EQ(errno, EFAULT);
    return t_ok("cpus_visible");
}
