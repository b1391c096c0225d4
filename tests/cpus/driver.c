/* SPDX-License-Identifier: MIT
 *
 * driver ROOT...: what runtime/cpus/cgroup.c finds below each folder, one after the other: the
 * quota in CPUs, and the cpuset.
 */
#include "cpus/cgroup.h"
#include "cpus/cpus.h"

#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        static struct cpu_mask m;
        cgroup_root = argv[i];
        printf("%s%u", i > 1 ? " " : "", cgroup_quota_cpus());
        if (cgroup_cpuset(&m)) printf(":%llx", (unsigned long long)m.word[0]);
    }
    puts("");
    return 0;
}
