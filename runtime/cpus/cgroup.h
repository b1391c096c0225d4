/* SPDX-License-Identifier: MIT
 *
 * CPU quota, weight and cpuset of the cgroups of the process, as the process sees them: version 1,
 * 2 or both, wherever they are mounted. A container sees its own part of the tree.
 */
#ifndef LISSOM_CGROUP_H
#define LISSOM_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Return the CPU quota in CPUs: ceil(quota / period), the smallest of the process's group and all
 * visible ancestors. Returns 0 if there is no limit, and the last result if /proc cannot be read.
 * Takes 5 us, and 3 us for each level. One caller at a time. */
uint32_t cgroup_quota_cpus(void);

/* Return the quota that the last call of cgroup_quota_cpus found, rounded down, but at least 1.
 * Pre: that call returned a limit. */
uint32_t cgroup_quota_whole(void);

/* Return a hash that identifies the group with the smallest quota, as the last call of
 * cgroup_quota_cpus found it; 0: none. It is the same for all processes that see the same files. */
uint32_t cgroup_quota_group(void);

/* Return a hash that identifies the scheduling group of the process, among which the kernel shares
 * CPUs. That is the process's cgroup, as cgroup_quota_cpus last found it, or the group of its
 * session where the kernel makes these (sched(7), autogroup). Returns 0 if there is neither.
 * *weight: of the group, 1 to 10000; 100 is usual. Weights of ancestors are ignored. Takes 8 us.
 * One caller at a time. */
uint32_t cgroup_weight(uint32_t *weight);

struct cpu_mask;
/* Set *m to the CPUs that cpusets allow the process, in the groups that cgroup_quota_cpus last
 * found. Without cpusets, these are the online CPUs. Returns false if neither can be read. One
 * caller at a time. */
bool cgroup_cpuset(struct cpu_mask *m);

/* Prefix of all paths; "" except in tests. */
extern const char *cgroup_root;

#endif
