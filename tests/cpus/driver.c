/* SPDX-License-Identifier: MIT
 *
 * driver ROOT...: prints the quota in CPUs and the cpuset that runtime/cpus/cgroup.c reads below
 * each folder in turn. driver --weight ROOT: prints whether there is a group, and its weight.
 * driver --groups ROOT ROOT: prints whether both have the same group, by quota and by weight.
 */
#include "cpus/cgroup.h"
#include "cpus/cpus.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--weight")) {
        uint32_t weight;
        cgroup_root = argv[2];
        cgroup_quota_cpus();
        printf("%s group", cgroup_weight(&weight) ? "a" : "no");
        printf(" of %u\n", weight);
        return 0;
    }
    if (argc == 4 && !strcmp(argv[1], "--groups")) {
        uint32_t quota[2], weighted[2], weight;
        for (int i = 0; i < 2; i++) {
            cgroup_root = argv[2 + i];
            cgroup_quota_cpus();
            quota[i] = cgroup_quota_group();
            weighted[i] = cgroup_weight(&weight);
        }
        printf("quota %s, weight %s\n", quota[0] == quota[1] ? "same" : "different",
               weighted[0] == weighted[1] ? "same" : "different");
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        static struct cpu_mask m;
        cgroup_root = argv[i];
        printf("%s%u", i > 1 ? " " : "", cgroup_quota_cpus());
        if (cgroup_cpuset(&m)) printf(":%llx", (unsigned long long)m.word[0]);
    }
    puts("");
    return 0;
}
