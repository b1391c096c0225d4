/* SPDX-License-Identifier: MIT
 *
 * What the cgroups of the process say of CPUs, as it sees them: version 1, 2 or both, through
 * whatever is mounted where, in containers the part that is mounted there.
 */
#ifndef LISSOM_CGROUP_H
#define LISSOM_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* ceil(quota / period), the least of all ancestors' that can be seen. Post: 0: no limit, or the
 * last answer if /proc cannot be read. 5 us, and 3 for each level. One caller at a time. */
uint32_t cgroup_quota_cpus(void);

/* Identifies the group that has the least quota, to all who see the same files; 0: none. Of the
 * last call of cgroup_quota_cpus. */
uint32_t cgroup_quota_group(void);

/* Identifies the group among whose likes the kernel shares CPUs: the process's cgroup, as
 * cgroup_quota_cpus has found it last, or its session's group where the kernel makes these
 * (sched(7), autogroup); 0: neither. *weight: 1..10000, of which 100 is usual. Weights of the
 * groups above are not looked at. 8 us. One caller at a time. */
uint32_t cgroup_weight(uint32_t *weight);

struct cpu_mask;
/* The CPUs that cpusets leave to the process, in the groups that cgroup_quota_cpus has found last,
 * or else those that are online. Post: false: neither can be read. One caller at a time. */
bool cgroup_cpuset(struct cpu_mask *m);

/* In front of all paths; "" unless for tests. */
extern const char *cgroup_root;

#endif
